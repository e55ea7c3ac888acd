// Test support for code that runs on a GPU: CudaTest, a fixture with a stream, and DeviceArray. Not
// thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_RUNTIME_CUDA_FIXTURE_H_
#define THINWIRE_KERNELS_CUDA_RUNTIME_CUDA_FIXTURE_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// A fixture with a CUDA stream. Its tests are skipped on a machine without a GPU. The emulation
// always provides a GPU.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    if (DeviceCount() == 0) GTEST_SKIP() << "this machine has no GPU that CUDA can use";
    Expect(stream_.Open());
  }

  static void Expect(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }

  Stream stream_;
};

// DeviceArray is an array in GPU memory that a test fills and reads back. Read() fails the test if
// a kernel wrote beyond the array's end. The array begins OFFSET values after a multiple of 256
// bytes.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(const std::vector<T>& values, const Stream& stream, size_t offset = 0)
      : stream_(stream), offset_(offset), count_(values.size()) {
    std::vector<T> all(offset + count_ + kGuardCount);
    Fill(all, kGuardByte);
    std::copy(values.begin(), values.end(), all.begin() + static_cast<ptrdiff_t>(offset));
    EXPECT_TRUE(buffer_.Allocate(all.size()).ok());
    EXPECT_TRUE(CopyToDevice(all, buffer_.span(), stream).ok());
    EXPECT_TRUE(stream.Wait().ok());
  }
  // Creates an array of COUNT unspecified values.
  DeviceArray(size_t count, const Stream& stream, size_t offset = 0)
      : DeviceArray(Noise(count), stream, offset) {}

  std::span<T> span() { return buffer_.span().subspan(offset_, count_); }
  T* data() { return span().data(); }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(data()); }

  // Waits for the stream and returns the values.
  std::vector<T> Read() {
    std::vector<T> all(buffer_.size());
    EXPECT_TRUE(CopyToHost(std::span<const T>(buffer_.span()), std::span(all), stream_).ok());
    const Status status = stream_.Wait();
    EXPECT_TRUE(status.ok()) << status.message();
    const auto guard = std::as_bytes(std::span(all)).subspan((offset_ + count_) * sizeof(T));
    EXPECT_TRUE(std::ranges::all_of(guard, [](std::byte b) { return b == kGuardByte; }))
        << "a kernel wrote behind an array of " << count_ << " values";
    std::vector<T> values(count_);
    std::copy_n(all.begin() + static_cast<ptrdiff_t>(offset_), count_, values.begin());
    return values;
  }

 private:
  static constexpr size_t kGuardCount = 64;
  static constexpr std::byte kGuardByte{0x5C};

  static void Fill(std::vector<T>& values, std::byte byte) {
    std::ranges::fill(std::as_writable_bytes(std::span(values)), byte);
  }

  static std::vector<T> Noise(size_t count) {
    std::vector<T> values(count);
    Fill(values, std::byte{0xEE});
    return values;
  }

  const Stream& stream_;
  const size_t offset_;
  const size_t count_;
  DeviceBuffer<T> buffer_;
};

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_RUNTIME_CUDA_FIXTURE_H_
