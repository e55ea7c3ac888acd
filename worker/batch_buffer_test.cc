#include "worker/batch_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Dataset kDataset = {
    .example_shape = {2}, .class_count = 4, .labels = {3, 2, 1}, .floats = {1, 2, 3, 4, 5, 6}};

TEST(BatchBufferTest, ExamplesAreGatheredInTheGivenOrder) {
  BatchBuffer buffer(kDataset);
  const Batch batch = buffer.Gather(std::vector<uint32_t>{2, 0});
  EXPECT_THAT(batch.x, ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(batch.labels, ElementsAre(1, 3));
}

TEST(BatchBufferTest, ConsecutiveExamplesAreGathered) {
  BatchBuffer buffer(kDataset);
  const Batch batch = buffer.GatherRun(1, 2);
  EXPECT_THAT(batch.x, ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(batch.labels, ElementsAre(2, 1));
}

TEST(BatchBufferTest, AnEmptyBatchHasNoValues) {
  BatchBuffer buffer(kDataset);
  buffer.GatherRun(0, 3);
  const Batch batch = buffer.Gather({});
  EXPECT_THAT(batch.x, IsEmpty());
  EXPECT_THAT(batch.labels, IsEmpty());
}

}  // namespace
}  // namespace thinwire
