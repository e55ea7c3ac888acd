#include "proto/diverging_pairs.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

// The fields of the problems, each with a blank behind it.
std::string FieldsOf(const std::string& text) {
  TrainConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  std::string fields;
  for (const PairProblem& problem :
       DivergingPairs(config.consistency(), config.optimization(), config.compression())) {
    fields += problem.field + " ";
  }
  return fields;
}

constexpr char kMomentum[] = "optimization { optimizer: 'momentum' } ";
constexpr char kLazy[] = "optimization { optimizer: 'momentum' lazy_slots: true } ";

TEST(DivergingPairsTest, TheDefaultsGoTogether) { EXPECT_EQ(FieldsOf(""), ""); }

TEST(DivergingPairsTest, ANarrowSparseDeltaBesideDenseSlotsIsRefused) {
  for (const char* optimizer : {"momentum", "nesterov", "adam", "adamw", "adagrad"}) {
    const std::string optimization = std::string("optimization { optimizer: '") + optimizer + "' }";
    EXPECT_EQ(FieldsOf(optimization + "compression { pull: 'delta_topk' }"), "pull ") << optimizer;
  }
  const std::string with(kMomentum);
  EXPECT_EQ(FieldsOf(with + "compression { pull: 'delta_topk' pull_density: .099 }"), "pull ");
  EXPECT_EQ(FieldsOf(with + "compression { pull: 'delta_randomk' pull_density: 1 }"), "pull ");
}

TEST(DivergingPairsTest, WhatIsWideOrExactOrDenseGoesBesideAnyOptimizer) {
  const std::string with(kMomentum);
  EXPECT_EQ(FieldsOf(with + "compression { pull: 'delta_topk' pull_density: .1 }"), "");
  for (const char* pull : {"fp32", "bf16", "delta", "delta_fp8_e5m2", "delta_fp16"}) {
    EXPECT_EQ(FieldsOf(with + "compression { pull: '" + pull + "' }"), "") << pull;
  }
}

TEST(DivergingPairsTest, ANarrowSparseDeltaGoesWithPlainDescentAndWithLazySlots) {
  for (const char* pull : {"delta_topk", "delta_randomk"}) {
    const std::string compression = std::string("compression { pull: '") + pull + "' }";
    EXPECT_EQ(FieldsOf(compression), "");
    EXPECT_EQ(FieldsOf(kLazy + compression), "");
  }
}

TEST(DivergingPairsTest, BesideTheWorkersMomentumASparseDeltaNeedsWidthAndAWarmUp) {
  const auto fields = [](const std::string& more) {
    return FieldsOf("compression { momentum_correction: true push: 'topk' " + more + " }");
  };
  EXPECT_EQ(fields("pull: 'delta_topk' pull_density: .001"), "pull ");
  EXPECT_EQ(fields("pull: 'delta_topk' pull_density: .001 density_warmup: .5"), "pull ");
  EXPECT_EQ(fields("pull: 'delta_topk' pull_density: .002"), "pull ");
  EXPECT_EQ(fields("pull: 'delta_randomk' pull_density: .002 density_warmup: .5"), "pull ");
  EXPECT_EQ(fields("pull: 'delta_topk' pull_density: .002 density_warmup: .5"), "");
  EXPECT_EQ(fields("pull: 'delta'"), "");
}

TEST(DivergingPairsTest, TwoMomentaAreRefused) {
  const std::string correction = "compression { momentum_correction: true }";
  for (const char* optimizer : {"momentum", "nesterov", "adam", "adamw"}) {
    EXPECT_EQ(FieldsOf(std::string("optimization { optimizer: '") + optimizer + "' }" + correction),
              "momentum_correction ")
        << optimizer;
  }
  EXPECT_EQ(FieldsOf(kLazy + correction), "momentum_correction ");
  EXPECT_EQ(FieldsOf(correction), "");
  EXPECT_EQ(FieldsOf("optimization { optimizer: 'adagrad' }" + correction), "");
}

TEST(DivergingPairsTest, LazySlotsGoWithDensePushesThoughTheySaveNothing) {
  EXPECT_EQ(FieldsOf(std::string(kLazy) + "compression { push: 'fp8_e5m2' }"), "");
}

TEST(DivergingPairsTest, PublishEveryIsOfDeltasInModesThatFoldByPush) {
  const auto fields = [](const std::string& mode, const std::string& pull) {
    return FieldsOf("consistency { mode: '" + mode + "' } compression { publish_every: 3 pull: '" +
                    pull + "' }");
  };
  EXPECT_EQ(fields("ssp", "delta"), "");
  EXPECT_EQ(fields("async", "delta_fp8_e5m2"), "");
  EXPECT_EQ(fields("sync", "delta"), "publish_every ");
  EXPECT_EQ(fields("backup", "delta"), "publish_every ");
  EXPECT_EQ(fields("async", "fp32"), "publish_every ");
}

TEST(DivergingPairsTest, TheTextSaysWhatToChooseInstead) {
  Optimization optimization;
  optimization.set_optimizer("adam");
  Compression compression;
  compression.set_pull("delta_topk");
  const auto problems = DivergingPairs(Consistency(), optimization, compression);
  ASSERT_EQ(problems.size(), 1);
  EXPECT_EQ(problems[0].text,
            ": want delta_topk of pull_density 0.1 or more beside optimizer adam without "
            "lazy_slots (or choose pull delta with lazy_slots, or pull delta_fp8_e5m2), for this "
            "diverges, got delta_topk of pull_density 0.01");
}

}  // namespace
}  // namespace thinwire
