// How much of a gradient's power each codec loses: the table of docs/codecs.md, held to within 5 %.
#include <cstdint>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

// Heavy tails vary from shard to shard (the largest values alone decide), so the table has means.
constexpr size_t kShardValues = 32 * 1024;
constexpr uint32_t kShards = 256;

using Draw = std::vector<float> (*)(size_t count, uint32_t seed);

struct Row {
  CodecSpec spec;
  double nmse;
};

void ExpectColumn(Draw draw, const std::vector<Row>& rows) {
  std::vector<double> sums(rows.size());
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    const std::vector<float> values = draw(kShardValues, shard);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto codec = MakeCodec(rows[i].spec).value();
      sums[i] += Nmse(Decoded(ByteChain(Encoded(*codec, values)), values.size()), values);
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_NEAR(sums[i] / kShards, rows[i].nmse, 0.05 * rows[i].nmse) << SpecName(rows[i].spec);
  }
}

constexpr CodecSpec kFp16 = {.id = CodecId::kFp16};
constexpr CodecSpec kBf16 = {.id = CodecId::kBf16};
constexpr CodecSpec kE5m2 = {.id = CodecId::kFp8E5m2};
constexpr CodecSpec kE4m3 = {.id = CodecId::kFp8E4m3};
constexpr CodecSpec kTop10 = {.id = CodecId::kTopK, .density = 0.1};
constexpr CodecSpec kTop1 = {.id = CodecId::kTopK, .density = 0.01};
constexpr CodecSpec kTop1E5m2 = {
    .id = CodecId::kTopK, .density = 0.01, .values = CodecId::kFp8E5m2};

TEST(QualityTest, GaussLosesWhatTheTableSays) {
  ExpectColumn(Gauss, {{kFp16, 4.31e-8},
                       {kBf16, 2.76e-6},
                       {kE5m2, 2.79e-3},
                       {kE4m3, 7.05e-4},
                       {kTop10, 0.561},
                       {kTop1, 0.916},
                       {kTop1E5m2, 0.916}});
}

TEST(QualityTest, LaplaceLosesWhatTheTableSays) {
  ExpectColumn(Laplace, {{kFp16, 4.31e-8},
                         {kBf16, 2.75e-6},
                         {kE5m2, 2.78e-3},
                         {kE4m3, 7.03e-4},
                         {kTop10, 0.405},
                         {kTop1, 0.838},
                         {kTop1E5m2, 0.839}});
}

TEST(QualityTest, StudentT3LosesWhatTheTableSays) {
  ExpectColumn(StudentT3, {{kFp16, 4.31e-8},
                           {kBf16, 2.75e-6},
                           {kE5m2, 2.77e-3},
                           {kE4m3, 7.00e-4},
                           {kTop10, 0.295},
                           {kTop1, 0.651},
                           {kTop1E5m2, 0.652}});
}

TEST(QualityTest, LogNormal2LosesWhatTheTableSays) {
  ExpectColumn(LogNormal2, {{kFp16, 4.37e-8},
                            {kBf16, 2.82e-6},
                            {kE5m2, 2.80e-3},
                            {kE4m3, 7.09e-4},
                            {kTop10, 4.94e-3},
                            {kTop1, 0.0710},
                            {kTop1E5m2, 0.0736}});
}

}  // namespace
}  // namespace thinwire
