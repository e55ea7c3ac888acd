#include "server/edge/convert_config.h"

#include <string>

#include "common/clock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

template <typename Message = Consistency>
Message Parsed(const std::string& text) {
  Message config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::string ErrorOf(const std::string& text) {
  const auto rule = RuleOf(Parsed(text));
  return rule.ok() ? "none" : std::string(rule.status().message());
}

TEST(RuleOfTest, EachModeIsARow) {
  EXPECT_EQ(RuleOf(Parsed("workers: 4")).value(), Rule::Sync(4));
  EXPECT_EQ(RuleOf(Parsed("workers: 4 ordered_fold: true")).value(), Rule::Sync(4, true));
  EXPECT_EQ(RuleOf(Parsed("mode: 'backup' workers: 4 backup: 1")).value(), Rule::Backup(4, 1));
  EXPECT_EQ(RuleOf(Parsed("mode: 'ssp' workers: 4 slack: 3 fold_every: 2")).value(),
            Rule::Ssp(4, 3, 2));
  EXPECT_EQ(RuleOf(Parsed("mode: 'async' workers: 4")).value(), Rule::Async(4));
}

TEST(RuleOfTest, WhatNoModeMeansIsRefusedByName) {
  EXPECT_EQ(ErrorOf("mode: 'bsp'"),
            "field \"mode\": want one of sync, backup, ssp, async, got \"bsp\"");
  EXPECT_EQ(ErrorOf("workers: 0"), "field \"workers\": want at least 1, got 0");
  EXPECT_EQ(ErrorOf("mode: 'backup' workers: 4 backup: 4"),
            "field \"backup\": want less than the 4 workers, got 4");
  EXPECT_EQ(ErrorOf("mode: 'sync' backup: 1"),
            "field \"backup\": is for mode backup, the mode is sync");
  EXPECT_EQ(ErrorOf("mode: 'async' slack: 1"),
            "field \"slack\": is for mode ssp, the mode is async");
  EXPECT_EQ(ErrorOf("mode: 'sync' fold_every: 2"),
            "field \"fold_every\": is for modes ssp and async, the mode is sync");
  EXPECT_EQ(ErrorOf("mode: 'ssp' ordered_fold: true"),
            "field \"ordered_fold\": is for mode sync, the mode is ssp");
  EXPECT_EQ(ErrorOf("mode: 'ssp' fold_every: 0"), "field \"fold_every\": want at least 1, got 0");
}

TEST(OptimizationTest, EveryFieldArrives) {
  Optimization config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "optimizer: 'adamw' learning_rate: 0.5 momentum: 0.25 beta1: 0.75 beta2: 0.875 epsilon: "
      "0.125 "
      "weight_decay: 2 schedule: 'step' warmup: 0.0625 decay_at: 0.5 decay_at: 0.75 "
      "decay_factor: 0.25 power: 3",
      &config));
  const OptimizerSpec optimizer{OptimizerKind::kAdamW, 0.25, 0.75, 0.875, 0.125, 2};
  EXPECT_EQ(OptimizerSpecOf(config).value(), optimizer);
  const ScheduleSpec schedule{ScheduleKind::kStep, 0.5, 0.0625, {0.5, 0.75}, 0.25, 3};
  EXPECT_EQ(ScheduleSpecOf(config).value(), schedule);
}

TEST(MakeJobTest, TheDefaultsMakeAJob) {
  ManualClock clock;
  EXPECT_TRUE(MakeJob(ServerConfig(), Epoch{1}, clock).ok());
}

TEST(MakeJobTest, MistakesAreNamed) {
  ManualClock clock;
  ServerConfig config;
  config.set_server(2);
  EXPECT_EQ(MakeJob(config, Epoch{1}, clock).status().message(),
            "field \"server\": want a number below servers, 1, got 2");
  config.set_server(0);
  config.mutable_optimization()->set_optimizer("sdg");
  EXPECT_EQ(MakeJob(config, Epoch{1}, clock).status().code(), absl::StatusCode::kInvalidArgument);
  config.mutable_optimization()->set_optimizer("sgd");
  config.mutable_consistency()->set_lease_seconds(-1);
  EXPECT_EQ(MakeJob(config, Epoch{1}, clock).status().message(),
            "field \"lease_seconds\": want more than 0, got -1");
  config.mutable_consistency()->set_lease_seconds(5);
  config.mutable_consistency()->set_mode("async");
  config.mutable_optimization()->set_gradient_selection("gtopk");
  config.mutable_optimization()->set_selection_rest("workers");
  EXPECT_EQ(MakeJob(config, Epoch{1}, clock).status().message(),
            "field \"selection_rest\": workers is for mode sync, the mode is async");
}

std::optional<PublishOptions> PublishOf(const std::string& text) {
  Compression config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return PublishOptionsOf(config).value();
}

SparseUpdateSpec SpecIn(const std::string& text, const std::string& compression = "") {
  return SparseUpdateSpecOf(Parsed<Optimization>(text), Parsed<Compression>(compression)).value();
}

TEST(SparseUpdateSpecOfTest, UpdatesAreWholeUnlessSaidOtherwise) {
  EXPECT_EQ(SpecIn(""), SparseUpdateSpec());
}

TEST(SparseUpdateSpecOfTest, EveryFieldArrives) {
  EXPECT_EQ(SpecIn("lazy_slots: true"), SparseUpdateSpec{.lazy_slots = true});
  EXPECT_EQ(SpecIn("gradient_selection: 'gtopk' selection_density: 0.25"),
            SparseUpdateSpec{.selection_density = 0.25});
  EXPECT_EQ(SpecIn("gradient_selection: 'gtopk' selection_rest: 'workers'"),
            (SparseUpdateSpec{.selection_density = 0.001,
                              .unselected_owner = UnselectedOwner::kWorkers}));
  EXPECT_EQ(SpecIn("gradient_selection: 'gtopk'",
                   "topk_least: 32 density_warmup: 0.2 warmup_density: 0.5"),
            (SparseUpdateSpec{.selection_density = 0.001,
                              .selection_least = 32,
                              .selection_warmup = {.part = 0.2, .first = 0.5}}));
}

TEST(SparseUpdateSpecOfTest, MistakesAreNamed) {
  const auto told = [](const std::string& text, const std::string& compression = "") {
    const auto spec =
        SparseUpdateSpecOf(Parsed<Optimization>(text), Parsed<Compression>(compression));
    return std::string(spec.status().message());
  };
  EXPECT_EQ(told("gradient_selection: 'topk'"),
            "field \"gradient_selection\": want one of none, gtopk, got \"topk\"");
  EXPECT_EQ(told("gradient_selection: 'gtopk' selection_density: 0"),
            "field \"selection_density\": want a number above 0 and at most 1, got 0");
  EXPECT_EQ(told("gradient_selection: 'gtopk' selection_rest: 'peers'"),
            "field \"selection_rest\": want one of server, workers, got \"peers\"");
  EXPECT_EQ(told("gradient_selection: 'gtopk'", "density_warmup: 2"),
            "field \"density_warmup\": want a part of the run from 0 to 1, got 2");
  EXPECT_EQ(told("gradient_selection: 'gtopk'", "warmup_density: 0"),
            "field \"warmup_density\": want a number above 0 and at most 1, got 0");
}

TEST(PublishOptionsOfTest, PullSaysWhatIsPublished) {
  EXPECT_FALSE(PublishOf("pull: 'bf16'").has_value());
  EXPECT_FALSE(PublishOf("pull: 'delta'")->codec.has_value());
  EXPECT_EQ(PublishOf("pull: 'delta_fp8_e5m2'")->codec->id, CodecId::kFp8E5m2);
  const auto sparse = PublishOf(
      "pull: 'delta_topk' pull_density: .25 pull_topk_values: 'fp16' density: .5 "
      "version_log_bytes: 77 publish_every: 3");
  EXPECT_EQ(sparse->codec->id, CodecId::kTopK);
  EXPECT_EQ(sparse->codec->density, .25);
  EXPECT_EQ(sparse->codec->values, CodecId::kFp16);
  EXPECT_EQ(sparse->log_bytes, 77u);
  EXPECT_EQ(sparse->every, 3u);
}

TEST(PublishOptionsOfTest, ACodecThatThereIsNotIsNamed) {
  Compression config;
  config.set_pull("delta_mp3");
  const auto publish = PublishOptionsOf(config);
  EXPECT_EQ(std::string(publish.status().message()).find("field \"pull\": codec: want one of"), 0u)
      << publish.status();
}

}  // namespace
}  // namespace thinwire
