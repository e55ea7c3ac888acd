#include "config/job.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

JobConfig Parsed(const std::string& text) {
  JobConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::string Error(const std::string& text) {
  return std::string(CheckJob(Parsed(text)).status().message());
}

JobSpec Spec(const std::string& text) {
  const absl::StatusOr<JobSpec> spec = CheckJob(Parsed(text));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.value_or(JobSpec());
}

// Expects that the values of the enum TYPE of job.proto have the names NAMES, in the order of the
// values' numbers.
void ExpectNames(const google::protobuf::EnumDescriptor& type,
                 std::span<const std::string_view> names) {
  ASSERT_EQ(type.value_count(), static_cast<int>(names.size())) << type.full_name();
  for (int i = 0; i < type.value_count(); ++i) {
    ASSERT_NE(type.FindValueByNumber(i), nullptr) << type.full_name() << " " << i;
    EXPECT_EQ(type.FindValueByNumber(i)->name(), names[i]);
  }
}

TEST(JobTest, TheEnumsOfTheFileAreThoseOfTheSpecs) {
  ExpectNames(*Optimization::Optimizer::Value_descriptor(), [] {
    static std::vector<std::string_view> names;
    for (const OptimizerTraits& optimizer : kOptimizers) names.push_back(optimizer.name);
    return std::span<const std::string_view>(names);
  }());
  ExpectNames(*Optimization::Schedule::Value_descriptor(), kScheduleNames);
  ExpectNames(*Optimization::SelectionRest::Value_descriptor(), kUnselectedOwnerNames);
  ExpectNames(*Consistency::StalenessPolicy::Value_descriptor(), kStalenessPolicyNames);
  ExpectNames(*Task::Model::Value_descriptor(), kModelNames);
  ExpectNames(*Task::Dataset::Value_descriptor(), kDatasetNames);
  ExpectNames(*Task::Precision::Value_descriptor(), kPrecisionNames);
  ExpectNames(*Task::Loss::Value_descriptor(), kLossNames);
  ExpectNames(*Task::LocalOptimizer::Value_descriptor(), kLocalOptimizerNames);
  ExpectNames(*Compression::IndexCoder::Value_descriptor(), kIndexCoderNames);
}

TEST(JobTest, TheCodecsOfTheFileAreThoseOfTheCodecTable) {
  const google::protobuf::EnumDescriptor& type = *Compression::Codec::Value_descriptor();
  EXPECT_EQ(type.value_count(),
            static_cast<int>(CodecNames().size() + 1 + DeltaCodecNames().size() + 3));
  const auto number_of = [&](const std::string& name) {
    const auto* value = type.FindValueByName(name);
    return value == nullptr ? -1 : value->number();
  };
  for (std::string_view name : CodecNames()) {
    EXPECT_EQ(number_of(std::string(name)), static_cast<int>(ParseCodec(name)->id)) << name;
  }
  for (std::string_view name : DeltaCodecNames()) {
    EXPECT_EQ(number_of("delta_" + std::string(name)),
              Compression::Codec::delta + static_cast<int>(ParseCodec(name)->id))
        << name;
  }
}

TEST(JobTest, EachFieldTakesTheCodecsOfItsUse) {
  const auto taken = [](const std::string& name) {
    const auto* field = Compression::descriptor()->FindFieldByName(name);
    const std::vector<std::string_view> names = EnumNames(*field);
    return std::vector<std::string>(names.begin(), names.end());
  };
  const auto strings = [](std::span<const std::string_view> names, const std::string& prefix = "") {
    std::vector<std::string> all;
    for (std::string_view name : names) all.push_back(prefix + std::string(name));
    return all;
  };
  const auto with = [](std::vector<std::string> all, const std::vector<std::string>& others) {
    all.insert(all.end(), others.begin(), others.end());
    return all;
  };
  using ::testing::UnorderedElementsAreArray;
  for (const char* name : {"first_push", "auto_codecs"}) {
    EXPECT_THAT(taken(name), UnorderedElementsAreArray(strings(CodecNames()))) << name;
  }
  for (const char* name : {"push", "adaptive_candidates"}) {
    EXPECT_THAT(taken(name), UnorderedElementsAreArray(
                                 with(strings(CodecNames()), {"auto", "fastest", "adaptive"})))
        << name;
  }
  for (const char* name : {"topk_values", "pull_topk_values"}) {
    EXPECT_THAT(taken(name), UnorderedElementsAreArray(strings(DenseCodecNames()))) << name;
  }
  EXPECT_THAT(taken("pull"),
              UnorderedElementsAreArray(with(with(strings(ParameterCodecNames()), {"delta"}),
                                             strings(DeltaCodecNames(), "delta_"))));
}

TEST(JobTest, ACodecWithoutMeaningInItsFieldIsRefused) {
  // Text goes through the parser, other messages only through CheckJob.
  JobConfig config;
  config.mutable_compression()->set_push(Compression::Codec::delta_fp16);
  config.mutable_compression()->set_pull(Compression::Codec::topk);
  config.mutable_compression()->add_auto_codecs(Compression::Codec::adaptive);
  config.add_parameter_group()->set_push(Compression::Codec::fastest);
  const std::string text(CheckJob(config).status().message());
  EXPECT_THAT(text, HasSubstr("push: wrong value (expected one of fp32, fp16"));
  EXPECT_THAT(text, HasSubstr("adaptive, got delta_fp16"));
  EXPECT_THAT(text, HasSubstr("pull: wrong value (expected one of fp32, fp16"));
  EXPECT_THAT(text, HasSubstr("delta_randomk, got topk"));
  EXPECT_THAT(text, HasSubstr("auto_codecs: wrong value (expected one of fp32, fp16"));
  EXPECT_THAT(text, HasSubstr("parameter_group[0].push: wrong value"));
}

TEST(JobTest, TheDefaultsOfTheFileAreThoseOfTheSpecs) {
  EXPECT_EQ(Spec(""), JobSpec([] {
              JobSpec spec;
              spec.rule.max_workers = 64;
              spec.push.warmup.first = {.id = CodecId::kFp8E5m2};
              return spec;
            }()));
}

TEST(JobTest, EachModeIsARule) {
  const auto rule = [](const std::string& settings) {
    return Spec("consistency { max_workers: 4 workers: 4 " + settings + " }").rule;
  };
  EXPECT_EQ(rule(""), Rule::Sync(4));
  EXPECT_EQ(rule("ordered_fold: true"), Rule::Sync(4, true));
  EXPECT_EQ(rule("mode: backup backup: 1"), Rule::Backup(4, 1));
  EXPECT_EQ(rule("mode: ssp slack: 3 fold_every: 2"), Rule::Ssp(4, 3, 2));
  EXPECT_EQ(rule("mode: async"), Rule::Async(4));
}

TEST(JobTest, StepsInFlightAreAPartOfTheRule) {
  const auto in_flight = [](const std::string& settings) {
    return Spec("consistency { " + settings + " }").rule.in_flight;
  };
  EXPECT_EQ(in_flight("mode: async"), 0u);
  EXPECT_EQ(in_flight("mode: ssp in_flight: 16"), 16u);
  EXPECT_EQ(in_flight(""), 0u);
  EXPECT_EQ(in_flight("mode: backup delayed_gradient: true"), 1u);
  const std::string recorded =
      "recovery { durability: log keep_log: true } consistency { mode: async";
  EXPECT_THAT(Error(recorded + " in_flight: 4 }"),
              HasSubstr("and keep_log: false (got mode: async, push: fp32, keep_log: true)"));
  EXPECT_EQ(Error("consistency { mode: async in_flight: 17 }"),
            "in_flight: out of range (expected 0 to 16, got 17)");
}

TEST(JobTest, EveryFieldOfTheStalenessPolicyArrives) {
  EXPECT_EQ(Spec("consistency { mode: ssp staleness_policy: drop staleness_bound: 9 }").staleness,
            (StalenessSpec{.policy = StalenessPolicy::kDrop, .bound = 9}));
  EXPECT_EQ(Spec("consistency { mode: async staleness_policy: dcasgd dcasgd_lambda: 0.5 "
                 "dcasgd_decay: 0.75 } compression { pull: delta_fp8_e5m2 }")
                .staleness,
            (StalenessSpec{.policy = StalenessPolicy::kDcasgd, .lambda = 0.5, .decay = 0.75}));
}

TEST(JobTest, EveryFieldOfTheOptimizationArrives) {
  const JobSpec adam = Spec(
      "optimization { optimizer: adamw learning_rate: 0.5 beta1: 0.75 beta2: 0.875 epsilon: 0.125 "
      "weight_decay: 2 schedule: step warmup: 0.0625 decay_at: 0.5 decay_at: 0.75 decay_factor: "
      "0.25 }");
  EXPECT_EQ(adam.optimizer, (OptimizerSpec{.kind = OptimizerKind::kAdamW,
                                           .beta1 = 0.75,
                                           .beta2 = 0.875,
                                           .epsilon = 0.125,
                                           .weight_decay = 2}));
  EXPECT_EQ(adam.schedule, (ScheduleSpec{.kind = ScheduleKind::kStep,
                                         .learning_rate = 0.5,
                                         .warmup = 0.0625,
                                         .decay_at = {0.5, 0.75},
                                         .decay_factor = 0.25}));
  EXPECT_EQ(Spec("optimization { parameter_average: 0.999 }").optimizer,
            OptimizerSpec{.parameter_average = 0.999});
  EXPECT_EQ(Error("optimization { parameter_average: nan }"),
            "parameter_average: out of range (expected at least 0 and below 1, got nan)");
  const JobSpec other =
      Spec("optimization { optimizer: momentum momentum: 0.25 schedule: polynomial power: 3 }");
  EXPECT_EQ(other.optimizer.momentum, 0.25);
  EXPECT_EQ(other.schedule.power, 3);
  EXPECT_EQ(Spec("consistency { workers: 2 } optimization { schedule: noise_scale largest_batch: "
                 "4096 growth_ratio: 2.5 }")
                .schedule,
            (ScheduleSpec{.kind = ScheduleKind::kNoiseScale,
                          .growth = {.largest_batch = 4096, .ratio = 2.5}}));
}

TEST(JobTest, AnAverageNeedsModeSyncAndKeepsNoParameters) {
  EXPECT_EQ(
      Error(
          "optimization { optimizer: average clip_norm: 1 } compression { push: topk pull: bf16 }"),
      "");
  EXPECT_EQ(Error("optimization { optimizer: average } recovery { durability: log }"), "");
  const auto error = [](const std::string& setting) {
    return Error(absl::StrCat("optimization { optimizer: average } ", setting));
  };
  EXPECT_EQ(error("consistency { mode: async }"),
            "optimizer: average is only valid with mode: sync (got mode: async)");
  EXPECT_EQ(
      error("recovery { durability: checkpoint }"),
      "optimizer: average is only valid with durability: none or log (got durability: checkpoint)");
  EXPECT_EQ(error("compression { pull: delta_fp8_e5m2 }"),
            "optimizer: average is only valid with a pull other than delta and delta_CODEC (got "
            "pull: delta)");
  EXPECT_EQ(error("parameter_group { match: 'a' optimizer: sgd }"),
            "optimizer: average is only valid with one optimizer for all tensors (got "
            "parameter_group[0] with "
            "optimizer: sgd)");
  EXPECT_EQ(Error("parameter_group { match: 'a' optimizer: average }"),
            "optimizer: average is only valid with one optimizer for all tensors (got "
            "parameter_group[0] with "
            "optimizer: average)");
  EXPECT_EQ(error("parameter_group { match: 'a' } parameter_group { match: 'b' weight_decay: 1 }"),
            "optimizer: average is only valid with groups without learning_rate_factor and "
            "weight_decay (got "
            "parameter_group[1])");
  EXPECT_EQ(
      Error("optimization { optimizer: average learning_rate: 1 lazy_slots: true }"),
      "learning_rate: only valid with an optimizer other than average (got optimizer: average)\n"
      "lazy_slots: only valid with an optimizer other than average (got optimizer: average)");
}

TEST(JobTest, TheAveragedGradientIsClippedInModeSync) {
  EXPECT_EQ(Spec("optimization { clip_norm: 2 }").clip_norm, 2);
  EXPECT_EQ(Error("optimization { clip_norm: -1 }"),
            "clip_norm: out of range (expected 0 to 3.4e38, the largest float, got -1)");
  EXPECT_EQ(Error("optimization { clip_norm: inf }"),
            "clip_norm: out of range (expected 0 to 3.4e38, the largest float, got inf)");
  EXPECT_EQ(Error("optimization { clip_norm: 2 } consistency { mode: async }"),
            "clip_norm: only valid with mode: sync (got mode: async)");
  EXPECT_EQ(
      Error("optimization { clip_norm: 2 } consistency { mode: backup workers: 3 backup: 1 }"),
      "clip_norm: only valid with mode: sync (got mode: backup)");
  EXPECT_EQ(Error("optimization { clip_norm: 2 gradient_selection: gtopk }"),
            "clip_norm: only valid with gradient_selection: none (got gradient_selection: gtopk)");
  EXPECT_EQ(Error("optimization { clip_norm: 2 } recovery { durability: log }"),
            "clip_norm: only valid with durability: none or checkpoint (got durability: log)");
  EXPECT_EQ(Error("optimization { clip_norm: 2 } recovery { durability: checkpoint } "
                  "compression { push: adaptive }"),
            "clip_norm: only valid with a push other than adaptive (got push: adaptive)");
  EXPECT_EQ(Error("optimization { optimizer: sign_sgd clip_norm: 2 }"),
            "clip_norm: only valid with an optimizer that reads the gradient's magnitude (got "
            "optimizer: sign_sgd)");
  EXPECT_EQ(Error("optimization { optimizer: sign_sgd } "
                  "consistency { mode: async staleness_policy: scale }"),
            "staleness_policy: scale has no effect with optimizer: sign_sgd (expected fold_every: "
            "2 or more, got 1)");
  EXPECT_EQ(Error("optimization { optimizer: sign_sgd } "
                  "consistency { mode: async staleness_policy: scale fold_every: 2 workers: 2 }"),
            "");
}

TEST(JobTest, EveryFieldOfSparseUpdatesArrives) {
  EXPECT_EQ(Spec("optimization { lazy_slots: true }").sparse_updates,
            SparseUpdateSpec{.lazy_slots = true});
  EXPECT_EQ(Spec("optimization { gradient_selection: gtopk selection_density: 0.25 selection_rest: "
                 "workers } compression { topk_least: 32 density_warmup: 0.2 warmup_density: 0.5 }")
                .sparse_updates,
            (SparseUpdateSpec{.selection_density = 0.25,
                              .selection_least = 32,
                              .selection_warmup = {.part = 0.2, .first = 0.5},
                              .unselected_owner = UnselectedOwner::kWorkers}));
}

TEST(JobTest, PullSaysHowParametersAreRead) {
  const JobSpec whole = Spec("compression { pull: bf16 }");
  EXPECT_FALSE(whole.publish.has_value());
  EXPECT_EQ(whole.pull_codec, CodecId::kBf16);
  EXPECT_EQ(Spec("compression { pull: delta }").publish, PublishOptions());
  EXPECT_EQ(Spec("compression { pull: delta_fp8_e5m2 }").publish->codec->id, CodecId::kFp8E5m2);
  const JobSpec sparse = Spec(
      "consistency { mode: async } compression { pull: delta_topk pull_density: .25 "
      "pull_topk_values: fp16 push: topk density: .5 version_log_bytes: 77 publish_every: 3 }");
  EXPECT_EQ(sparse.publish->codec->id, CodecId::kTopK);
  EXPECT_EQ(sparse.publish->codec->density, .25);
  EXPECT_EQ(sparse.publish->codec->values, CodecId::kFp16);
  EXPECT_EQ(sparse.publish->log_bytes, 77u);
  EXPECT_EQ(sparse.publish->every, 3u);
}

TEST(JobTest, EveryFieldOfAPushArrives) {
  const PushSpec push = Spec(R"(
      compression {
        push: topk density: 0.001 topk_values: fp8_e5m2 density_warmup: 0.2 warmup_density: 0.25
        first_push: topk first_push_part: 0.1 momentum_correction: true correction_momentum: 0.5
        correction_nesterov: true factor_masking: false gradient_clip: 2 topk_indices: golomb_rice
        topk_least: 16
      })")
                            .push;
  const CodecSpec codec = {.id = CodecId::kTopK,
                           .density = 0.001,
                           .least_sent = 16,
                           .values = CodecId::kFp8E5m2,
                           .indices = IndexCoder::kGolombRice};
  EXPECT_EQ(
      push,
      (PushSpec{
          .codec = codec,
          .warmup = {.density = {.part = 0.2, .first = 0.25}, .first_part = 0.1, .first = codec},
          .correction =
              {.enabled = true, .momentum = 0.5f, .nesterov = true, .factor_masking = false},
          .gradient_clip = 2}));
  EXPECT_EQ(Spec("compression { push: twobit twobit_threshold: 2 }").push.codec.twobit_threshold,
            2);
  EXPECT_EQ(Spec("compression { push: qsgd qsgd_levels: 3 }").push.codec.qsgd_levels, 3u);
  EXPECT_EQ(Spec("compression { push: powersgd powersgd_rank: 4 topk_values: bf16 }").push.codec,
            (CodecSpec{.id = CodecId::kPowerSgd, .values = CodecId::kBf16, .powersgd_rank = 4}));
  EXPECT_EQ(Spec("compression { push: onebit onebit_group: 64 }").push.codec.onebit_group, 64u);
}

TEST(JobTest, WithoutErrorFeedbackRandomKIsUnbiased) {
  EXPECT_FALSE(Spec("compression { push: randomk }").push.codec.unbiased);
  EXPECT_TRUE(Spec("compression { push: randomk error_feedback: false }").push.codec.unbiased);
}

TEST(JobTest, ARuleChoosesFromTheGivenCodecsOrFromTheDefaultOnes) {
  EXPECT_EQ(Spec("").push.choose, std::nullopt);
  const PushSpec dense = Spec("compression { push: auto }").push;
  EXPECT_EQ(dense.choose, ChoiceRule::kAuto);
  ASSERT_EQ(dense.candidates.size(), 3u);
  EXPECT_EQ(dense.candidates[0].id, CodecId::kBf16);
  const PushSpec given =
      Spec("compression { push: fastest auto_codecs: topk density: 0.125 }").push;
  EXPECT_EQ(given.choose, ChoiceRule::kFastest);
  EXPECT_THAT(given.candidates, ElementsAre(CodecSpec{.id = CodecId::kTopK, .density = .125}));
}

TEST(JobTest, AdaptivePrecisionOfProcessesNeedsCheckpoints) {
  const JobConfig config = Parsed("compression { push: adaptive error_feedback: false }");
  EXPECT_EQ(CheckJob(config).status().message(),
            "push: adaptive returns to checkpoints (expected durability: checkpoint, got "
            "durability: none)");
  EXPECT_TRUE(
      CheckJob(Parsed("recovery { durability: checkpoint } compression { push: adaptive }")).ok());
  const PushSpec push = CheckJob(config, {}, JobUse::kVirtualTime).value().push;
  ASSERT_TRUE(push.adaptive.has_value());
  std::vector<std::string_view> names;
  for (const AdaptiveSpec::Arm& arm : push.adaptive->arms) names.push_back(ArmName(arm));
  EXPECT_THAT(names, ElementsAre("fp32", "fp8_e5m2", "table_1", "fastest"));
  EXPECT_EQ(push.candidates.size(), 3u) << "those of fastest";
  EXPECT_EQ(push.adaptive->speculate_steps, 100);
  EXPECT_EQ(push.adaptive->continue_steps, 1000);

  const PushSpec given =
      CheckJob(Parsed("compression { push: adaptive adaptive_candidates: topk density: 0.125 "
                      "adaptive_speculate_steps: 8 adaptive_continue_steps: 9 adaptive_prune: true "
                      "adaptive_per_layer: true }"),
               {}, JobUse::kVirtualTime)
          .value()
          .push;
  EXPECT_EQ(*given.adaptive,
            (AdaptiveSpec{.arms = {{.codec = {.id = CodecId::kTopK, .density = .125}}},
                          .speculate_steps = 8,
                          .continue_steps = 9,
                          .prune = true,
                          .per_layer = true}));
  EXPECT_EQ(CheckJob(Parsed("task { local_steps: 2 } compression { push: adaptive }"), {},
                     JobUse::kVirtualTime)
                .status()
                .message(),
            "push: adaptive is only valid with local_steps: 1 (got 2)");
  EXPECT_EQ(CheckJob(Parsed("consistency { mode: async } compression { push: adaptive }"), {},
                     JobUse::kVirtualTime)
                .status()
                .message(),
            "push: adaptive is only valid with mode: sync (got mode: async)");
}

TEST(JobTest, ALossOfTheModuleFitsItsModelAndItsPush) {
  EXPECT_EQ(CheckJob(Parsed("task { model: mlp loss: script }")).status().message(),
            "loss: only valid with model: torchscript (got model: mlp)");
  EXPECT_EQ(CheckJob(Parsed("task { model: torchscript model_file: 'm' loss: script } "
                            "recovery { durability: checkpoint } compression { push: adaptive }"))
                .status()
                .message(),
            "push: adaptive compares test accuracies (expected another push with loss: script, "
            "which has none)");
}

TEST(JobTest, EveryFieldOfTheTaskArrives) {
  EXPECT_EQ(Spec("task { model: torchscript model_file: 'm.pt' dataset: safetensors data_dir: '/d' "
                 "batch_size: 8 epochs: 3 seed: 5 device: 'cuda:1' threads: 2 train_examples: 9 "
                 "test_examples: 7 precision: bf16 loss_scale: 4 loss_scale_interval: 6 "
                 "stop_on_divergence: false local_steps: 8 local_optimizer: momentum "
                 "local_learning_rate: 0.5 local_momentum: 0.25 local_weight_decay: 0.125 "
                 "accumulate: 4 loss: script fragments: 2 overlap_steps: 3 mixing: 0.75 }")
                .task,
            (TaskSpec{.model = ModelKind::kTorchScript,
                      .model_file = "m.pt",
                      .dataset = DatasetKind::kSafetensors,
                      .data_dir = "/d",
                      .batch_size = 8,
                      .epochs = 3,
                      .seed = 5,
                      .device = "cuda:1",
                      .threads = 2,
                      .train_examples = 9,
                      .test_examples = 7,
                      .precision = Precision::kBf16,
                      .loss_scale = 4,
                      .loss_scale_interval = 6,
                      .stop_on_divergence = false,
                      .local = {.count = 8,
                                .optimizer = LocalOptimizerKind::kMomentum,
                                .learning_rate = 0.5,
                                .momentum = 0.25,
                                .weight_decay = 0.125,
                                .fragments = 2,
                                .overlap = 3,
                                .mixing = 0.75},
                      .accumulate = 4,
                      .loss = LossKind::kScript}));
}

TEST(JobTest, TheSettingsOfTheWholeJobArrive) {
  const JobSpec spec = Spec(
      "name: 'fashion' servers: 2 silence_seconds: 3 straggler: '1:50ms' report: 'r.json' "
      "consistency { workers: 2 lease_seconds: 4 start_timeout_seconds: 5 drain_seconds: 6 "
      "max_workers: 7 } "
      "compression { shard_size: 8192 }");
  EXPECT_EQ(spec.name, "fashion");
  EXPECT_EQ(spec.server_count, 2u);
  EXPECT_EQ(spec.silence, absl::Seconds(3));
  EXPECT_THAT(spec.stragglers, ElementsAre(Straggler{WorkerId{1}, absl::Milliseconds(50)}));
  EXPECT_EQ(spec.report, "r.json");
  EXPECT_EQ(spec.lease, absl::Seconds(4));
  EXPECT_EQ(spec.start_timeout, absl::Seconds(5));
  EXPECT_EQ(spec.drain, absl::Seconds(6));
  EXPECT_EQ(spec.rule.max_workers, 7u);
  EXPECT_EQ(Spec("").rule.max_workers, 64u);
  EXPECT_EQ(Spec("consistency { workers: 100 }").rule.max_workers, 100u);
  EXPECT_EQ(spec.shard_size, 8192u);
}

TEST(JobTest, TheSettingsOfRecoveryArrive) {
  EXPECT_EQ(Spec("").recovery, RecoverySpec());
  EXPECT_EQ(
      Spec("recovery { durability: log checkpoint_seconds: 7 server_return_seconds: 8 }").recovery,
      (RecoverySpec{.durability = Durability::kLog,
                    .checkpoint_interval = absl::Seconds(7),
                    .server_return = absl::Seconds(8)}));
  EXPECT_EQ(
      Spec("recovery { durability: checkpoint checkpoint_seconds: 0 failure_seconds: 9 }").recovery,
      (RecoverySpec{.durability = Durability::kCheckpoint,
                    .checkpoint_interval = absl::ZeroDuration(),
                    .failure_interval = absl::Seconds(9)}));
  EXPECT_EQ(Spec("recovery { durability: log keep_log: true }").recovery,
            (RecoverySpec{.durability = Durability::kLog, .keep_log = true}));
  EXPECT_EQ(Spec("recovery { durability: log keep_checkpoints: 5 keep_every: 100 keep_best: 3 }")
                .recovery.retention,
            (RetentionSpec{.newest_count = 5, .every = 100, .best_count = 3}));
  EXPECT_EQ(
      Error("recovery { durability: checkpoint keep_best: 1 } compression { push: adaptive }"),
      "keep_best: only valid with a push other than adaptive (got push: adaptive)");
  EXPECT_EQ(Error("recovery { durability: log keep_best: 1001 }"),
            "keep_best: out of range (expected from 0 to 1000, got 1001)");
  EXPECT_EQ(
      Error("recovery { checkpoint_seconds: 7 }"),
      "checkpoint_seconds: only valid with durability: checkpoint or log (got durability: none)");
}

TEST(JobTest, EveryNumberOutsideItsRangeIsRefused) {
  int checked = 0;
  for (const char* text : {"servers: 0",
                           "silence_seconds: 0",
                           "silence_seconds: inf",
                           "consistency { workers: 0 }",
                           "consistency { workers: 100000 }",
                           "consistency { mode: backup workers: 2 backup: 2 }",
                           "consistency { mode: ssp fold_every: 0 }",
                           "consistency { mode: backup workers: 1 backup: 0 auto_backup: true }",
                           "consistency { mode: ssp workers: 1 auto_slack: true }",
                           "consistency { lease_seconds: -1 }",
                           "consistency { start_timeout_seconds: nan }",
                           "optimization { learning_rate: -0.1 }",
                           "optimization { learning_rate: nan }",
                           "optimization { learning_rate: 1e60 }",
                           "optimization { optimizer: momentum momentum: 1 }",
                           "optimization { optimizer: adam beta1: -0.1 }",
                           "optimization { optimizer: adam beta2: 1 }",
                           "optimization { optimizer: adam epsilon: 0 }",
                           "optimization { optimizer: adam epsilon: 1e-60 }",
                           "optimization { weight_decay: inf }",
                           "optimization { warmup: 1.1 }",
                           "optimization { schedule: step decay_at: 1.5 }",
                           "optimization { schedule: step decay_at: 0.6 decay_at: 0.5 }",
                           "optimization { schedule: step decay_factor: 2 }",
                           "optimization { schedule: polynomial power: -1 }",
                           "compression { push: topk density: 0 }",
                           "compression { push: topk density: 1.01 }",
                           "compression { push: topk density: nan }",
                           "compression { push: topk topk_least: 0 }",
                           "compression { push: twobit twobit_threshold: 0 }",
                           "compression { push: qsgd qsgd_levels: 128 }",
                           "compression { push: qsgd qsgd_levels: 0 }",
                           "compression { push: powersgd powersgd_rank: 0 }",
                           "compression { push: powersgd powersgd_rank: 33 }",
                           "compression { push: onebit onebit_group: 12 }",
                           "compression { shard_size: 262145 }",
                           "task { data_dir: '' }",
                           "task { batch_size: 0 }",
                           "task { epochs: 0 }",
                           "task { device: 'gpu' }",
                           "task { device: 'cuda:' }",
                           "task { threads: 0 }",
                           "task { local_steps: 0 }",
                           "task { accumulate: 0 }",
                           "task { batch_size: 1024 accumulate: 64 local_steps: 64 }",
                           "task { local_steps: 2 local_optimizer: momentum local_momentum: 1 }",
                           "task { local_steps: 8 fragments: 0 }",
                           "task { local_steps: 8 fragments: 9 }",
                           "task { local_steps: 8 fragments: 2 overlap_steps: 4 }",
                           "task { local_steps: 8 overlap_steps: 2 mixing: 1.5 }",
                           "task { loss_scale: 3 }",
                           "task { loss_scale: 2 loss_scale_interval: 0 }",
                           "task { model: torchscript }"}) {
    EXPECT_THAT(Error(text), HasSubstr(" (expected ")) << text;
    ++checked;
  }
  EXPECT_EQ(checked, 53);
}

TEST(JobTest, ACombinationThatDivergesIsRefusedAtItsPlace) {
  EXPECT_THAT(Error("optimization { optimizer: adam } compression { pull: delta_topk }"),
              HasSubstr("pull: diverges with optimizer: adam without lazy_slots"));
  EXPECT_EQ(Error("compression { push: topk momentum_correction: true error_feedback: false }"),
            "error_feedback: required by momentum_correction (expected true, got false)");
}

TEST(JobTest, AProblemBeginsWithThePlaceOfItsField) {
  const JobConfig config =
      Parsed("optimization { schedule: step decay_at: 0.5 decay_at: 7 warmup: 2 }");
  EXPECT_EQ(CheckJob(config, {{"decay_at[1]", "--decay_at"}, {"warmup", "f:1:2"}}).status(),
            absl::InvalidArgumentError("f:1:2: warmup: out of range (expected 0 to 1, got 2)\n"
                                       "--decay_at: out of range (expected 0 to 1, got 7)"));
}

TEST(JobTest, AStragglerIsAWorkerAndADelay) {
  EXPECT_EQ(ParseStraggler("3:50ms").value(), (Straggler{WorkerId{3}, absl::Milliseconds(50)}));
  for (const char* text : {"", "3", "3:", ":50ms", "3:50", "3:-1s", "x:1s", "3:2h", "3:inf"}) {
    EXPECT_FALSE(ParseStraggler(text).ok()) << text;
  }
  EXPECT_EQ(Error("straggler: '1:1s'"),
            "straggler: out of range (expected a worker below 1, the value of workers, got 1)");
  EXPECT_EQ(Error("straggler: '0:1'"),
            "straggler: wrong value (expected WORKER:DELAY, such as 3:50ms, with a delay of at "
            "most 1h, got 0:1)");
}

TEST(JobTest, WarningsHaveThePlaceOfTheirField) {
  EXPECT_THAT(WarningsOf({}, Spec("")), ElementsAre());
  EXPECT_THAT(WarningsOf({}, Spec("compression { pull: delta }"), {{"pull", "--pull"}}),
              ElementsAre(HasSubstr("--pull: saves few bytes, because dense pushes")));
}

TEST(JobTest, MissingFilesAreNamed) {
  const std::string folder = testing::TempDir();
  EXPECT_THAT(MissingFiles({.data_dir = folder}), ElementsAre());
  EXPECT_THAT(
      MissingFiles({.model_file = "/no/model.pt", .data_dir = "/no/data"}, {{"data_dir", "j:1:2"}}),
      ElementsAre(
          "model_file: no such file (expected a TorchScript file, got \"/no/model.pt\")",
          "j:1:2: data_dir: no such folder (expected the folder of the dataset, as in Debian's "
          "package dataset-fashion-mnist, got \"/no/data\")"));
  EXPECT_THAT(MissingFiles({.model_file = folder, .data_dir = folder}),
              ElementsAre(HasSubstr("model_file: no such file")));
}

TEST(JobTest, AParameterGroupReplacesSettingsOfTheJob) {
  const JobSpec spec = Spec(
      "optimization { optimizer: lars momentum: 0.8 weight_decay: 0.1 trust_coefficient: 0.01 } "
      "compression { push: topk density: 0.02 } "
      "parameter_group { match: '*.bias' weight_decay: 0 optimizer: momentum push: bf16 } "
      "parameter_group { match: 'w?' learning_rate_factor: 0.5 density: 0.5 }");
  ASSERT_EQ(spec.groups.size(), 2u);
  const GroupSpec& biases = spec.groups[0];
  EXPECT_EQ(biases.match, "*.bias");
  EXPECT_EQ(biases.optimizer, (OptimizerSpec{.kind = OptimizerKind::kMomentum,
                                             .momentum = 0.8,
                                             .weight_decay = 0,
                                             .trust_coefficient = 0.01}));
  EXPECT_EQ(biases.push->id, CodecId::kBf16);
  const GroupSpec& weights = spec.groups[1];
  EXPECT_EQ(weights.learning_rate_factor, 0.5);
  EXPECT_EQ(weights.optimizer, spec.optimizer);
  EXPECT_EQ(weights.push->id, CodecId::kTopK);
  EXPECT_EQ(weights.push->density, 0.5);
  EXPECT_EQ(spec.push.codec.density, 0.02);
}

TEST(JobTest, ProblemsOfAParameterGroupHaveItsPlace) {
  EXPECT_EQ(Error("parameter_group { match: 'a' } parameter_group { weight_decay: -1 }"),
            "parameter_group[1].match: no pattern (expected one such as \"*.bias\", got \"\")\n"
            "parameter_group[1].weight_decay: out of range (expected 0 to 3.4e38, the largest "
            "float, got -1)");
  EXPECT_EQ(Error("parameter_group { match: 'a' density: 0.1 }"),
            "parameter_group[0].density: only valid with push: topk, randomk or dct_topk (got "
            "push: fp32)");
  EXPECT_EQ(Error("parameter_group { match: 'a' push: powersgd density: 0.1 }"),
            "parameter_group[0].density: only valid with push: topk, randomk or dct_topk (got "
            "push: powersgd)");
  EXPECT_EQ(Error("parameter_group { match: 'a' push: bf16 } compression { push: auto }"),
            "parameter_group[0].push: only valid with a push other than auto and fastest");
  EXPECT_EQ(
      CheckJob(Parsed("parameter_group { match: '' }"), {{"parameter_group[0].match", "job:3:19"}})
          .status()
          .message(),
      "job:3:19: parameter_group[0].match: no pattern (expected one such as \"*.bias\", got "
      "\"\")");
}

TEST(JobTest, SettingsOfAGroupsOptimizerAndCodecAreUsed) {
  EXPECT_EQ(
      Error("optimization { momentum: 0.5 } parameter_group { match: 'a' optimizer: momentum }"),
      "");
  EXPECT_EQ(Error("compression { topk_least: 2 } parameter_group { match: 'a' push: topk }"), "");
}

TEST(JobTest, CombinationsAreCheckedWithTheOptimizersOfGroups) {
  EXPECT_EQ(Error("optimization { optimizer: lamb lazy_slots: true }"),
            "lazy_slots: no norms of tensors in a sparse update (expected false, or another "
            "optimizer, got true with optimizer: lamb)");
  EXPECT_THAT(Error("optimization { lazy_slots: true } "
                    "parameter_group { match: 'a' optimizer: lars }"),
              HasSubstr("got true with optimizer: lars"));
  EXPECT_THAT(Error("compression { momentum_correction: true } "
                    "parameter_group { match: 'a' optimizer: adam }"),
              HasSubstr("momentum_correction: a second momentum"));
}

}  // namespace
}  // namespace thinwire
