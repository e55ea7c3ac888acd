#include "client/replica/shard_values.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace thinwire::client {
namespace {

using Floats = std::vector<float>;

Floats ToVector(std::span<const float> values) { return {values.begin(), values.end()}; }

TEST(ShardValuesTest, OneSegmentIsNotCopied) {
  const Floats a = {0, 1, 2, 3, 4};
  const std::array<std::span<const float>, 1> tensors = {a};
  const std::vector<Segment> segments = {{.tensor = 0, .offset = 1, .count = 3}};
  Floats scratch;
  const std::span<const float> values = Gather(segments, tensors, scratch);
  EXPECT_EQ(values.data(), a.data() + 1);
  EXPECT_EQ(values.size(), 3u);
  EXPECT_TRUE(scratch.empty());
}

TEST(ShardValuesTest, SeveralSegmentsAreGatheredInOrderAndScatteredBack) {
  Floats a = {0, 1, 2}, b = {10, 11, 12, 13};
  const std::vector<Segment> segments = {{.tensor = 1, .offset = 2, .count = 2},
                                         {.tensor = 0, .offset = 0, .count = 3}};
  const std::array<std::span<const float>, 2> from = {a, b};
  Floats scratch = {99, 99};
  EXPECT_EQ(ToVector(Gather(segments, from, scratch)), (Floats{12, 13, 0, 1, 2}));

  const std::array<std::span<float>, 2> to = {a, b};
  EXPECT_TRUE(InPlace(segments, to).empty());
  Scatter(Floats{-1, -2, -3, -4, -5}, segments, to);
  EXPECT_EQ(a, (Floats{-3, -4, -5}));
  EXPECT_EQ(b, (Floats{10, 11, -1, -2}));
}

}  // namespace
}  // namespace thinwire::client
