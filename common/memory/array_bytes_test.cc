#include "common/memory/array_bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace thinwire {
namespace {

TEST(ArrayBytesTest, ACopyDoesNotFollowTheArray) {
  std::vector<float> values = {1, -2, 3};
  const ByteChain saved = CopyArray(std::as_bytes(std::span(values)));
  values.assign(3, 9);
  std::vector<float> restored(3);
  EXPECT_TRUE(FillArray("masters", saved, std::as_writable_bytes(std::span(restored))).ok());
  EXPECT_EQ(restored, (std::vector<float>{1, -2, 3}));
}

TEST(ArrayBytesTest, AnotherSizeIsRefusedWithBothSizes) {
  std::array<float, 2> values = {5, 6};
  const absl::Status status =
      FillArray("masters", CopyArray({}), std::as_writable_bytes(std::span(values)));
  EXPECT_EQ(status.message(), "masters: wrong size (expected 8 bytes, got 0)");
  EXPECT_EQ(values[0], 5);
}

}  // namespace
}  // namespace thinwire
