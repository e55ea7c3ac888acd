#include "common/spec/push_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

#include "common/spec/publish_options.h"
#include "common/spec/sparse_update_spec.h"

namespace thinwire {
namespace {

template <typename Spec>
std::string Error(const Spec& spec) {
  return std::string(spec.Validate().ToStatus().message());
}

TEST(PushSpecTest, TheDefaultsAreValid) { EXPECT_EQ(Error(PushSpec()), ""); }

TEST(PushSpecTest, TheSettingsOfEveryCodecAreChecked) {
  EXPECT_EQ(Error(PushSpec{.codec = {.id = CodecId::kTopK, .density = 0}}),
            "density: out of range (expected above 0 and at most 1, got 0)");
  EXPECT_EQ(Error(PushSpec{.candidates = {{.id = CodecId::kQsgd, .qsgd_levels = 128}}}),
            "qsgd_levels: out of range (expected 1 to 127, got 128)");
  EXPECT_EQ(Error(PushSpec{.warmup = {.first = {.id = CodecId::kOneBit, .onebit_group = 12}}}),
            "onebit_group: out of range (expected a multiple of 8, got 12)");
  EXPECT_EQ(Error(PushSpec{.codec = {.id = CodecId::kTopK, .values = CodecId::kTopK}}),
            "topk_values: not dense (expected a dense codec, got topk)");
  EXPECT_EQ(Error(PushSpec{.codec = {.id = CodecId::kTopK, .least_sent = 0}}),
            "topk_least: out of range (expected 1 to 262144, got 0)");
  EXPECT_NE(Error(PushSpec{.codec = {.id = CodecId::kTwoBit, .twobit_threshold = 0}}), "");
}

TEST(PushSpecTest, TheSettingsOfAValueCodecAreChecked) {
  EXPECT_EQ(Error(PushSpec{
                .codec = {.id = CodecId::kRandomK, .values = CodecId::kQsgd, .qsgd_levels = 0}}),
            "qsgd_levels: out of range (expected 1 to 127, got 0)");
}

TEST(PushSpecTest, EveryNumberOutsideItsRangeIsAProblem) {
  EXPECT_NE(Error(PushSpec{.warmup = {.density = {.part = 2}}}), "");
  EXPECT_NE(Error(PushSpec{.warmup = {.density = {.first = 0}}}), "");
  EXPECT_NE(Error(PushSpec{.warmup = {.first_part = -1}}), "");
  EXPECT_NE(Error(PushSpec{.correction = {.momentum = 1}}), "");
  EXPECT_NE(Error(PushSpec{.gradient_clip = std::nan("")}), "");
}

TEST(PushSpecTest, MomentumCorrectionNeedsErrorFeedback) {
  EXPECT_EQ(Error(PushSpec{.correction = {.enabled = true}}), "");
  EXPECT_EQ(Error(PushSpec{.error_feedback = false, .correction = {.enabled = true}}),
            "error_feedback: required by momentum_correction (expected true, got false)");
}

TEST(PushSpecTest, AdaptivePrecisionHasDifferentCandidatesAndLongEnoughTrials) {
  const auto error = [](const AdaptiveSpec& adaptive) {
    return Error(PushSpec{.adaptive = adaptive});
  };
  const AdaptiveSpec::Arm fp32 = {}, fastest = {.fastest = true};
  EXPECT_EQ(error({.arms = {fp32, fastest}}), "");
  EXPECT_EQ(error({.arms = {fp32}, .speculate_steps = 7}),
            "adaptive_speculate_steps: out of range (expected 8 to 1000000000, got 7)");
  EXPECT_EQ(error({.arms = {fp32}, .continue_steps = 0}),
            "adaptive_continue_steps: out of range (expected 1 to 1000000000, got 0)");
  EXPECT_NE(error({.arms = {fp32, fastest, fp32}})
                .find("adaptive_candidates[0]: given twice (expected each candidate once, got fp32 "
                      "again)"),
            std::string::npos);
  EXPECT_EQ(error({.arms = {{.codec = {.id = CodecId{102}}}}}),
            "adaptive_candidates[0]: not a candidate (expected a codec or fastest, got auto or "
            "adaptive)");
}

TEST(PushSpecTest, PrintsTheSettingsInUse) {
  const auto printed = [](const PushSpec& spec) {
    std::ostringstream out;
    out << spec;
    return out.str();
  };
  EXPECT_EQ(printed({}), "fp32");
  EXPECT_EQ(printed({.choose = ChoiceRule::kAuto, .candidates = {{.id = CodecId::kBf16}}}),
            "auto bf16");
  EXPECT_EQ(printed({.adaptive = AdaptiveSpec{.arms = {{}, {.fastest = true}}}}),
            "adaptive fp32 fastest");
  EXPECT_EQ(printed({.codec = {.id = CodecId::kTopK},
                     .warmup = {.density = {.part = 0.25}},
                     .correction = {.enabled = true, .momentum = 0.5f},
                     .gradient_clip = 2}),
            "topk, density warm-up 0.25, momentum correction 0.5, clip 2");
  EXPECT_EQ(printed({.codec = {.id = CodecId::kDctTopK}, .residual_decay = 0.5}),
            "dct_topk, residual decay 0.5");
}

TEST(PushSpecTest, AResidualDecayIsAFraction) {
  EXPECT_EQ(Error(PushSpec{.residual_decay = 0}), "");
  for (const double decay : {-0.1, 1.1}) EXPECT_NE(Error(PushSpec{.residual_decay = decay}), "");
}

TEST(PublishOptionsTest, ACodecOfDeltasHasADensityOfItsOwn) {
  EXPECT_EQ(Error(PublishOptions()), "");
  EXPECT_EQ(Error(PublishOptions{.codec = CodecSpec{.id = CodecId::kTopK, .density = 2}}),
            "pull_density: out of range (expected above 0 and at most 1, got 2)");
}

TEST(SparseUpdateSpecTest, ASelectionHasADensityAndAMinimum) {
  EXPECT_EQ(Error(SparseUpdateSpec()), "");
  EXPECT_EQ(Error(SparseUpdateSpec{.selection_density = 0}),
            "selection_density: out of range (expected above 0 and at most 1, got 0)");
  EXPECT_NE(Error(SparseUpdateSpec{.selection_density = 0.5, .selection_least = 0}), "");
  EXPECT_NE(Error(SparseUpdateSpec{.selection_density = 0.5, .selection_warmup = {.part = 2}}), "");
  EXPECT_EQ(Error(SparseUpdateSpec{.unselected_owner = UnselectedOwner::kWorkers}),
            "selection_rest: only valid with gradient_selection: gtopk (got none)");
}

}  // namespace
}  // namespace thinwire
