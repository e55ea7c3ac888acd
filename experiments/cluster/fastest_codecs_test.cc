#include "experiments/cluster/fastest_codecs.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/ids.h"

namespace thinwire::lab {
namespace {

// Partition::Make puts each matrix into shards of its own: a convolution, a matrix and two vectors.
const Partition& Model() {
  static const Partition partition =
      *Partition::Make({{"c", {16, 1, 5, 5}}, {"w", {200, 100}}, {"b", {100}}, {"s", {16}}}, 0, 1);
  return partition;
}

RunSpec SpecOf(double megabits_per_second) {
  RunSpec spec;
  spec.job.push.choose = ChoiceRule::kFastest;
  spec.job.push.candidates = {{.id = CodecId::kFp8E5m2}, {.id = CodecId::kTable1}};
  spec.machines.mutable_worker_link()->set_megabits_per_second(megabits_per_second);
  CodecCost& table = *spec.machines.add_codec_cost();
  table.set_codec(Compression::Codec::table_1);
  table.set_encode_us_per_shard(20);
  table.set_encode_ns_per_value(2);
  CodecCost& fp8 = *spec.machines.add_codec_cost();
  fp8.set_codec(Compression::Codec::fp8_e5m2);
  fp8.set_encode_ns_per_value(1);
  return spec;
}

// Returns the codecs of the convolution, of the matrix and of the vectors.
std::vector<CodecId> Codecs(const RunSpec& spec) {
  const std::vector<CodecSpec> codecs = FastestCodecs(spec, Model());
  std::vector<CodecId> ids(3);
  for (uint32_t s = 0; s < codecs.size(); ++s) {
    const uint32_t tensor = Model().segments(ShardId{s})[0].tensor;
    ids[tensor < 2 ? tensor : 2] = codecs[s].id;
  }
  return ids;
}

TEST(FastestCodecsTest, ATimePerShardMakesASmallLayerUseACheaperCodec) {
  // A byte takes 8 ns at 1 Gbit/s. One bit saves 7 ns per value of the matrix: more than its 2 ns
  // and 20 us per shard. It saves 2.8 us of the convolution.
  EXPECT_EQ(Codecs(SpecOf(1000)),
            (std::vector<CodecId>{CodecId::kFp8E5m2, CodecId::kTable1, CodecId::kFp8E5m2}));
}

TEST(FastestCodecsTest, VectorsHaveNoCodecBelowEightBits) {
  EXPECT_EQ(Codecs(SpecOf(1)),
            (std::vector<CodecId>{CodecId::kTable1, CodecId::kTable1, CodecId::kFp8E5m2}));
}

TEST(FastestCodecsTest, WithoutALimitOfTheLinkNothingIsEncoded) {
  EXPECT_EQ(Codecs(SpecOf(0)), std::vector<CodecId>(3, CodecId::kFp32));
}

TEST(FastestCodecsTest, ManyWorkersShareTheLinksOfTheServers) {
  RunSpec spec = SpecOf(0);
  spec.job.rule.workers = 100;
  spec.machines.mutable_server_link()->set_megabits_per_second(100);
  EXPECT_EQ(Codecs(spec)[0], CodecId::kTable1);
}

}  // namespace
}  // namespace thinwire::lab
