#include "worker/batches/batch_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Dataset kDataset = {.example_shape = {2},
                          .class_count = 4,
                          .labels = {3, 2, 1},
                          .values = std::vector<float>{1, 2, 3, 4, 5, 6}};

std::span<const float> Floats(const ValuesView& values) {
  return std::get<std::span<const float>>(values);
}

TEST(BatchBufferTest, ExamplesAreGatheredInTheGivenOrder) {
  BatchBuffer buffer(kDataset);
  const Batch batch = buffer.Gather(std::vector<uint32_t>{2, 0});
  EXPECT_THAT(Floats(batch.x), ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(batch.labels, ElementsAre(1, 3));
}

TEST(BatchBufferTest, ConsecutiveExamplesAreGathered) {
  BatchBuffer buffer(kDataset);
  const Batch batch = buffer.GatherRun(1, 2);
  EXPECT_THAT(Floats(batch.x), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(batch.labels, ElementsAre(2, 1));
}

TEST(BatchBufferTest, AnEmptyBatchHasNoValues) {
  BatchBuffer buffer(kDataset);
  buffer.GatherRun(0, 3);
  const Batch batch = buffer.Gather({});
  EXPECT_THAT(Floats(batch.x), IsEmpty());
  EXPECT_THAT(batch.labels, IsEmpty());
}

TEST(BatchBufferTest, TokensAndTargetsKeepTheirTypes) {
  const Dataset tokens = {.example_shape = {2},
                          .values = std::vector<int32_t>{1, 2, 3, 4, 5, 6},
                          .targets = std::vector<int64_t>{10, 20, 30}};
  ASSERT_EQ(tokens.example_count(), 3);
  BatchBuffer buffer(tokens);
  const Batch batch = buffer.Gather(std::vector<uint32_t>{2, 0});
  EXPECT_THAT(std::get<std::span<const int32_t>>(batch.x), ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(std::get<std::span<const int64_t>>(batch.targets), ElementsAre(30, 10));
  EXPECT_THAT(batch.labels, IsEmpty());
  const ExampleForm form = FormOf(tokens);
  EXPECT_EQ(form.type, ValueType::kInt32);
  EXPECT_EQ(form.target_type, ValueType::kInt64);
  EXPECT_THAT(form.target_shape, IsEmpty());
  EXPECT_EQ(form.class_count, 0);
}

}  // namespace
}  // namespace thinwire
