#include "kernels/cuda/ops/write_bytes.h"

#include "kernels/cuda/ops/twin_cases.h"

namespace thinwire::kernels::cuda {
namespace {

using WriteBytesTest = CudaTest;

TEST_F(WriteBytesTest, TheHostMayOverwriteTheBytesAtOnce) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{19}, kMaxWriteBytes}) {
    std::vector<std::byte> bytes(count);
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(3 * i + 1);
    const std::vector<std::byte> want = bytes;
    DeviceArray<std::byte> bytes_written(count, stream_, 1), head(count, stream_, 3);
    DeviceArray<uint32_t> size(1, stream_);
    Expect(WriteBytes(bytes, bytes_written.data(), stream_));
    Expect(WriteHead(bytes, head.data(), 12'345, size.data(), stream_));
    std::ranges::fill(bytes, std::byte{0});
    ASSERT_EQ(bytes_written.Read(), want);
    ASSERT_EQ(head.Read(), want);
    ASSERT_EQ(size.Read()[0], 12'345u);
  }
}

}  // namespace
}  // namespace thinwire::kernels::cuda
