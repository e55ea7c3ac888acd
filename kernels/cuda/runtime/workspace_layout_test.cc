#include "kernels/cuda/runtime/workspace_layout.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace thinwire::kernels::cuda {
namespace {

struct Append {
  template <typename T>
  void operator()(size_t count, T) {
    const std::span<T> array = layout.Append<T>(count);
    bytes.push_back(std::as_writable_bytes(array));
    sizes.push_back(count * sizeof(T));
  }

  WorkspaceLayout& layout;
  std::vector<std::span<std::byte>> bytes = {};
  std::vector<size_t> sizes = {};
};

TEST(WorkspaceLayoutTest, ArraysAreAlignedAndDoNotOverlap) {
  alignas(16) std::byte memory[16];  // never accessed; provides a base address
  for (const size_t count : {0, 1, 3, 4, 4097, 1 << 20}) {
    WorkspaceLayout layout(memory);
    Append append{layout};
    append(1, uint64_t{});
    append(count, uint32_t{});
    append(count, std::byte{});
    append(count, uint64_t{});
    append(count, float{});
    const std::byte* end = memory;
    for (size_t a = 0; a < append.bytes.size(); ++a) {
      const std::span<std::byte> array = append.bytes[a];
      EXPECT_EQ(array.size(), append.sizes[a]);
      EXPECT_EQ((array.data() - memory) % 16, 0);
      EXPECT_GE(array.data(), end);
      end = array.data() + array.size();
    }
    EXPECT_GE(memory + layout.bytes(), end);
    EXPECT_LT(memory + layout.bytes(), end + 16);
  }
}

TEST(WorkspaceLayoutTest, WithoutMemoryComputesTheSameSize) {
  alignas(16) std::byte memory[16];
  WorkspaceLayout with(memory), without(nullptr);
  for (WorkspaceLayout* layout : {&with, &without}) {
    (void)layout->Append<uint32_t>(5);
    (void)layout->Append<std::byte>(17);
  }
  EXPECT_EQ(with.bytes(), 64u);
  EXPECT_EQ(without.bytes(), 64u);
  EXPECT_TRUE(without.Append<float>(3).empty());
}

}  // namespace
}  // namespace thinwire::kernels::cuda
