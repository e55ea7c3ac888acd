#include "experiments/cluster/value_ages.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/codec/codec.h"
#include "common/memory/byte_chain.h"
#include "common/model/partition.h"

namespace thinwire::lab {
namespace {

CheckedPayload PayloadOf(const CodecSpec& spec, const std::vector<float>& values) {
  const auto codec = MakeCodec(spec).value();
  std::vector<std::byte> bytes(codec->MaxPayloadBytes(values.size()));
  bytes.resize(codec->Encode(values, RandomKeys(), bytes));
  return EncodedPayload(ByteChain(std::move(bytes)), values.size());
}

TEST(ValueAgesTest, AnAgeIsTheNumberOfStepsSinceTheIndexWasSent) {
  const Partition partition = Partition::Make({{"w", {2, 2}}}, 0, 1).value();
  const CodecSpec half = {.id = CodecId::kTopK, .density = 0.5};
  ValueAges ages(partition);
  const ShardId shard{0};
  ages.Accepted(shard, Step{0}, PayloadOf(half, {9, 8, 1, 1}));  // indices 0 and 1: age 0
  ages.Accepted(shard, Step{1}, PayloadOf(half, {9, 1, 8, 1}));  // index 0: age 0, index 2: age 1
  ages.Accepted(shard, Step{4}, PayloadOf(half, {1, 8, 1, 9}));  // index 1: age 3, index 3: age 4
  EXPECT_EQ(ages.counts(), (std::vector<uint64_t>{3, 1, 0, 1, 1}));
}

TEST(ValueAgesTest, DensePushesAreNotCounted) {
  const Partition partition = Partition::Make({{"w", {2, 2}}}, 0, 1).value();
  ValueAges ages(partition);
  ages.Accepted(ShardId{0}, Step{0}, PayloadOf({.id = CodecId::kFp32}, {9, 8, 1, 1}));
  EXPECT_TRUE(ages.counts().empty());
}

}  // namespace
}  // namespace thinwire::lab
