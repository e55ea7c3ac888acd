#include "kernels/cuda/put_head.h"

#include "kernels/cuda/twin_test.h"

namespace thinwire::kernels::cuda {
namespace {

using PutHeadTest = TwinTest;

TEST_F(PutHeadTest, TheHostMayForgetTheHeadBeforeItIsThere) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{19}, kMostHeadBytes}) {
    std::vector<std::byte> head(count);
    for (size_t i = 0; i < count; ++i) head[i] = static_cast<std::byte>(3 * i + 1);
    const std::vector<std::byte> want = head;
    DeviceArray<std::byte> out(count, stream_, 1);
    DeviceArray<uint32_t> size(1, stream_);
    Expect(PutHead(head, out.data(), 12'345, size.data(), stream_));
    std::ranges::fill(head, std::byte{0});
    ASSERT_EQ(out.Read(), want);
    ASSERT_EQ(size.Read()[0], 12'345u);
  }
}

}  // namespace
}  // namespace thinwire::kernels::cuda
