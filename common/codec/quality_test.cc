// Checks that the measured encoding errors of the codecs are within 5 % of the table in
// docs/codec_measurements.md.
#include <cstdint>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

// The encoding error of a heavy-tailed shard depends on its few largest values. The table in
// docs/codec_measurements.md therefore contains means over kShards shards.
constexpr size_t kShardValues = 32 * 1024;
constexpr uint32_t kShards = 256;

using Draw = std::vector<float> (*)(size_t count, uint32_t seed);

struct Row {
  CodecSpec spec;
  double gauss, laplace, student_t3, log_normal_2;
};

constexpr CodecSpec kTop10 = {.id = CodecId::kTopK, .density = 0.1};
constexpr CodecSpec kTop1 = {.id = CodecId::kTopK, .density = 0.01};
constexpr CodecSpec kTop1E5m2 = {
    .id = CodecId::kTopK, .density = 0.01, .values = CodecId::kFp8E5m2};
constexpr CodecSpec kTop1Log4 = {.id = CodecId::kTopK, .density = 0.01, .values = CodecId::kLog4};
constexpr CodecSpec kRandom10 = {.id = CodecId::kRandomK, .density = 0.1};
constexpr CodecSpec kPowerSgd2 = {.id = CodecId::kPowerSgd};
constexpr CodecSpec kPowerSgd8 = {.id = CodecId::kPowerSgd, .powersgd_rank = 8};

std::vector<Row> Rows() {
  const auto spec = [](const char* name) { return ParseCodec(name).value(); };
  return {{spec("fp16"), 4.31e-8, 4.31e-8, 4.31e-8, 4.37e-8},
          {spec("bf16"), 2.76e-6, 2.75e-6, 2.75e-6, 2.82e-6},
          {spec("fp8_e5m2"), 2.79e-3, 2.78e-3, 2.77e-3, 2.80e-3},
          {spec("fp8_e4m3"), 7.05e-4, 7.03e-4, 7.00e-4, 7.09e-4},
          {spec("int8"), 8.87e-5, 2.70e-4, 3.66e-3, 6.49e-3},
          {spec("qsgd"), 0.0363, 0.0803, 0.255, 0.152},
          {spec("log_4"), 0.0386, 0.0383, 0.0438, 0.252},
          {spec("fp4_e3m0"), 0.0382, 0.0367, 0.0317, 0.0120},
          {spec("twobit"), 0.450, 0.621, 0.712, 0.996},
          {spec("onebit"), 0.363, 0.500, 0.590, 0.973},
          {spec("onebit_sign"), 0.363, 0.500, 0.590, 0.973},
          {spec("table_1"), 3.50, 6.90, 8.23, 5.80},
          {spec("table_2"), 0.211, 0.269, 0.331, 0.741},
          {spec("table_4"), 0.0172, 0.0431, 0.152, 0.724},
          {spec("table_8"), 1.95e-3, 0.0102, 0.114, 0.701},
          {spec("lloyd_1"), 0.363, 0.500, 0.590, 0.973},
          {spec("lloyd_2"), 0.118, 0.176, 0.306, 0.563},
          {spec("lloyd_4"), 0.0113, 0.0249, 0.0941, 0.377},
          {spec("lloyd_8"), 5.03e-4, 2.46e-3, 0.0326, 0.208},
          {kTop10, 0.561, 0.405, 0.295, 4.94e-3},
          {kTop1, 0.916, 0.838, 0.651, 0.0710},
          {kTop1E5m2, 0.916, 0.839, 0.652, 0.0736},
          {kTop1Log4, 0.916, 0.838, 0.653, 0.0940},
          {kRandom10, 0.900, 0.900, 0.900, 0.896},
          {kPowerSgd2, 0.978, 0.978, 0.971, 0.817},
          {kPowerSgd8, 0.913, 0.913, 0.895, 0.605}};
}

void ExpectColumn(Draw draw, double Row::*column) {
  const std::vector<Row> rows = Rows();
  std::vector<double> sums(rows.size());
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    const std::vector<float> values = draw(kShardValues, shard);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto codec = MakeCodec(rows[i].spec).value();
      sums[i] += Nmse(Decoded(ByteChain(Encoded(*codec, values)), values.size()), values);
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const double nmse = rows[i].*column;
    EXPECT_NEAR(sums[i] / kShards, nmse, 0.05 * nmse) << SpecName(rows[i].spec);
  }
}

TEST(QualityTest, LossesOfGaussMatchTheTable) { ExpectColumn(Gauss, &Row::gauss); }

TEST(QualityTest, LossesOfLaplaceMatchTheTable) { ExpectColumn(Laplace, &Row::laplace); }

TEST(QualityTest, LossesOfStudentT3MatchTheTable) { ExpectColumn(StudentT3, &Row::student_t3); }

TEST(QualityTest, LossesOfLogNormal2MatchTheTable) { ExpectColumn(LogNormal2, &Row::log_normal_2); }

}  // namespace
}  // namespace thinwire
