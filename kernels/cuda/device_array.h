// DeviceArray: an array on the device for a test, which fills it and reads it back, and finds out
// who writes behind it. Only tests use it. Not thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_DEVICE_ARRAY_H_
#define THINWIRE_KERNELS_CUDA_DEVICE_ARRAY_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/buffer.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// It begins OFFSET values behind a multiple of 256 bytes.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(const std::vector<T>& values, const Stream& stream, size_t offset = 0)
      : stream_(stream), offset_(offset), count_(values.size()) {
    std::vector<T> all(offset + count_ + kGuard);
    Fill(all, kPattern);
    std::copy(values.begin(), values.end(), all.begin() + static_cast<ptrdiff_t>(offset));
    EXPECT_TRUE(buffer_.Allocate(all.size()).ok());
    EXPECT_TRUE(CopyToDevice(all, buffer_.span(), stream).ok());
    EXPECT_TRUE(stream.Wait().ok());
  }
  // Room for COUNT of which nothing is known.
  DeviceArray(size_t count, const Stream& stream, size_t offset = 0)
      : DeviceArray(Noise(count), stream, offset) {}

  std::span<T> span() { return buffer_.span().subspan(offset_, count_); }
  T* data() { return span().data(); }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(data()); }

  // Waits for the stream.
  std::vector<T> Read() {
    std::vector<T> all(buffer_.size());
    EXPECT_TRUE(CopyToHost(std::span<const T>(buffer_.span()), std::span(all), stream_).ok());
    const Status status = stream_.Wait();
    EXPECT_TRUE(status.ok()) << status.message();
    const auto behind = std::as_bytes(std::span(all)).subspan((offset_ + count_) * sizeof(T));
    EXPECT_TRUE(std::ranges::all_of(behind, [](std::byte b) { return b == kPattern; }))
        << "behind " << count_ << " values something was written";
    std::vector<T> values(count_);
    std::copy_n(all.begin() + static_cast<ptrdiff_t>(offset_), count_, values.begin());
    return values;
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr std::byte kPattern{0x5C};

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

#endif  // THINWIRE_KERNELS_CUDA_DEVICE_ARRAY_H_
