#include "config/applicability.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "config/fields.h"

namespace thinwire {
namespace {

JobConfig Parsed(const std::string& text) {
  JobConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::string Useless(const std::string& text) {
  return std::string(UselessFields(Parsed(text)).ToStatus().message());
}

// A test case: a field of the job file, a job in which the field has an effect, and a job in which
// it has none.
struct Case {
  const char* field;
  const char* section;
  const char* value;
  const char* with_effect;
  const char* without_effect;
};

constexpr Case kCases[] = {
    {"backup", "consistency", "1", "consistency { mode: backup }", ""},
    {"auto_backup", "consistency", "true", "consistency { mode: backup }",
     "consistency { mode: ssp }"},
    {"slack", "consistency", "0", "consistency { mode: ssp }", "consistency { mode: async }"},
    {"auto_slack", "consistency", "true", "consistency { mode: ssp }",
     "consistency { mode: backup }"},
    {"in_flight", "consistency", "4", "consistency { mode: ssp }", ""},
    {"in_flight", "consistency", "4", "consistency { mode: async }",
     "consistency { mode: async } compression { push: fastest }"},
    {"delayed_gradient", "consistency", "true", "consistency { mode: backup }",
     "consistency { mode: ssp }"},
    {"delayed_gradient", "consistency", "true", "",
     "consistency { mode: backup auto_backup: true }"},
    {"delayed_gradient", "consistency", "true", "",
     "optimization { gradient_selection: gtopk selection_rest: workers }"},
    {"delayed_gradient", "consistency", "true", "", "optimization { optimizer: average }"},
    {"delayed_gradient", "consistency", "true", "", "compression { push: auto }"},
    {"fold_every", "consistency", "1", "consistency { mode: async }",
     "consistency { mode: backup }"},
    {"staleness_policy", "consistency", "none", "consistency { mode: ssp }", ""},
    {"staleness_bound", "consistency", "4", "consistency { mode: ssp staleness_policy: drop }",
     "consistency { mode: ssp staleness_policy: scale }"},
    {"dcasgd_lambda", "consistency", "0.04", "consistency { mode: async staleness_policy: dcasgd }",
     "consistency { staleness_policy: dcasgd }"},
    {"dcasgd_decay", "consistency", "0.95", "consistency { mode: ssp staleness_policy: dcasgd }",
     "consistency { mode: ssp staleness_policy: scale }"},
    {"ordered_fold", "consistency", "false", "", "consistency { mode: ssp }"},
    {"learning_rate", "optimization", "0.1", "", "optimization { optimizer: average }"},
    {"weight_decay", "optimization", "0", "", "optimization { optimizer: average }"},
    {"momentum", "optimization", "0.9", "optimization { optimizer: nesterov }", ""},
    {"trust_coefficient", "optimization", "0.01", "parameter_group { optimizer: lars }",
     "optimization { optimizer: lamb }"},
    {"beta1", "optimization", "0.9", "optimization { optimizer: adam }",
     "optimization { optimizer: adagrad }"},
    {"beta2", "optimization", "0.9", "optimization { optimizer: adamw }",
     "optimization { optimizer: momentum }"},
    {"epsilon", "optimization", "1e-8", "optimization { optimizer: adagrad }", ""},
    {"decay_at", "optimization", "0.5", "optimization { schedule: step }", ""},
    {"decay_factor", "optimization", "0.5", "optimization { schedule: step }",
     "optimization { schedule: cosine }"},
    {"power", "optimization", "1", "optimization { schedule: polynomial }", ""},
    {"largest_batch", "optimization", "0", "optimization { schedule: noise_scale }",
     "optimization { schedule: cosine }"},
    {"growth_ratio", "optimization", "2", "optimization { schedule: noise_scale }",
     "optimization { schedule: polynomial }"},
    {"selection_density", "optimization", "0.5", "optimization { gradient_selection: gtopk }", ""},
    {"selection_rest", "optimization", "server", "optimization { gradient_selection: gtopk }", ""},
    {"density", "compression", "0.01", "compression { push: topk }", "compression { push: fp16 }"},
    {"density", "compression", "0.01", "compression { push: auto auto_codecs: randomk }",
     "compression { push: auto }"},
    {"density", "compression", "0.01", "compression { first_push: topk first_push_part: 0.1 }",
     "compression { first_push: topk }"},
    {"topk_values", "compression", "fp16", "compression { push: randomk }", ""},
    {"topk_values", "compression", "bf16", "compression { push: powersgd }",
     "compression { push: onebit }"},
    {"powersgd_rank", "compression", "4", "compression { push: powersgd }",
     "compression { push: topk }"},
    {"powersgd_rank", "compression", "4",
     "compression { first_push: powersgd first_push_part: 0.1 }",
     "compression { first_push: powersgd }"},
    {"topk_indices", "compression", "elias_fano", "compression { pull: delta_topk }",
     "compression { push: randomk }"},
    {"topk_least", "compression", "8", "optimization { gradient_selection: gtopk }", ""},
    {"density_warmup", "compression", "0.1", "compression { push: topk }",
     "compression { push: auto auto_codecs: topk }"},
    {"warmup_density", "compression", "0.1", "compression { push: topk density_warmup: 0.5 }",
     "compression { push: topk }"},
    {"error_feedback", "compression", "true", "compression { push: bf16 }", ""},
    {"density", "compression", "0.05", "compression { push: dct_topk }", ""},
    {"residual_decay", "compression", "0.9", "compression { push: dct_topk }", ""},
    {"residual_decay", "compression", "0.9", "compression { push: topk }",
     "compression { push: topk momentum_correction: true }"},
    {"residual_decay", "compression", "0.9", "compression { push: int8 }",
     "compression { push: int8 error_feedback: false }"},
    {"correction_momentum", "compression", "0.9", "compression { momentum_correction: true }", ""},
    {"correction_nesterov", "compression", "true", "compression { momentum_correction: true }", ""},
    {"factor_masking", "compression", "true",
     "compression { momentum_correction: true push: topk }",
     "compression { momentum_correction: true push: bf16 }"},
    {"first_push_part", "compression", "0.1", "compression { push: topk }",
     "compression { push: fastest }"},
    {"first_push", "compression", "bf16", "compression { first_push_part: 0.1 }", ""},
    {"auto_codecs", "compression", "bf16", "compression { push: auto }", ""},
    {"auto_codecs", "compression", "bf16", "compression { push: adaptive }",
     "compression { push: adaptive adaptive_candidates: fp32 }"},
    {"density", "compression", "0.01", "compression { push: adaptive adaptive_candidates: topk }",
     "compression { push: adaptive }"},
    {"adaptive_candidates", "compression", "fp16", "compression { push: adaptive }",
     "compression { push: fastest }"},
    {"adaptive_speculate_steps", "compression", "100", "compression { push: adaptive }", ""},
    {"adaptive_continue_steps", "compression", "1000", "compression { push: adaptive }", ""},
    {"adaptive_prune", "compression", "false", "compression { push: adaptive }", ""},
    {"adaptive_per_layer", "compression", "true", "compression { push: adaptive }", ""},
    {"pull_density", "compression", "0.01", "compression { pull: delta_randomk }",
     "compression { pull: delta }"},
    {"pull_topk_values", "compression", "fp16", "compression { pull: delta_topk }",
     "compression { pull: delta_fp16 }"},
    {"version_log_bytes", "compression", "1", "compression { pull: delta }",
     "compression { pull: bf16 }"},
    {"publish_every", "compression", "1", "consistency { mode: ssp } compression { pull: delta }",
     "compression { pull: delta }"},
    {"twobit_threshold", "compression", "1", "compression { push: topk topk_values: twobit }", ""},
    {"qsgd_levels", "compression", "1", "compression { pull: delta_qsgd }", ""},
    {"qsgd_levels", "compression", "1", "compression { push: powersgd topk_values: qsgd }",
     "compression { push: powersgd }"},
    {"onebit_group", "compression", "8", "compression { push: onebit_sign }", ""},
    {"model_file", "task", "'x'", "task { model: torchscript }", ""},
    {"loss", "task", "script", "task { model: torchscript }", ""},
    {"local_optimizer", "task", "adamw", "task { local_steps: 2 }", ""},
    {"local_learning_rate", "task", "0.1", "task { local_steps: 2 }", "task { local_steps: 1 }"},
    {"local_momentum", "task", "0.5", "task { local_steps: 2 local_optimizer: momentum }",
     "task { local_steps: 2 }"},
    {"local_weight_decay", "task", "0.1", "task { local_steps: 2 }", ""},
    {"fragments", "task", "4", "task { local_steps: 8 }", ""},
    {"fragments", "task", "4", "task { local_steps: 8 }",
     "task { local_steps: 8 } compression { gradient_clip: 1 }"},
    {"fragments", "task", "4", "task { local_steps: 8 }",
     "task { local_steps: 8 } compression { push: fastest }"},
    {"overlap_steps", "task", "1", "task { local_steps: 8 }",
     "task { local_steps: 8 } optimization { clip_norm: 1 }"},
    {"overlap_steps", "task", "1", "task { local_steps: 8 } recovery { durability: log }",
     "task { local_steps: 8 } recovery { durability: log keep_log: true }"},
    {"overlap_steps", "task", "1", "task { local_steps: 8 } consistency { mode: async }",
     "task { local_steps: 8 } consistency { mode: async in_flight: 2 }"},
    {"overlap_steps", "task", "1", "task { local_steps: 8 }",
     "task { local_steps: 8 } consistency { delayed_gradient: true }"},
    {"fragments", "task", "4", "task { local_steps: 8 } consistency { mode: backup }",
     "task { local_steps: 8 } consistency { mode: backup auto_backup: true }"},
    {"fragments", "task", "4", "task { local_steps: 8 } consistency { mode: ssp }",
     "task { local_steps: 8 } consistency { mode: ssp auto_slack: true }"},
    {"mixing", "task", "0.25", "task { local_steps: 8 overlap_steps: 2 }",
     "task { local_steps: 8 }"},
    {"auto_local_steps", "task", "true", "task { local_steps: 8 }", "task { local_steps: 1 }"},
    {"auto_local_steps", "task", "true", "task { local_steps: 8 } recovery { durability: log }",
     "task { local_steps: 8 } recovery { durability: log keep_log: true }"},
    {"auto_local_steps", "task", "true", "task { local_steps: 8 }",
     "task { local_steps: 8 } consistency { ordered_fold: true }"},
    {"auto_local_steps", "task", "true", "task { local_steps: 8 }",
     "task { local_steps: 8 fragments: 2 }"},
    {"auto_local_steps", "task", "true", "task { local_steps: 8 } consistency { mode: async }",
     "task { local_steps: 8 } consistency { mode: async in_flight: 2 }"},
    {"auto_local_steps", "task", "true", "task { local_steps: 8 }",
     "task { local_steps: 8 } consistency { delayed_gradient: true }"},
    {"loss_scale_interval", "task", "1", "task { loss_scale: 2 }", ""},
    {"checkpoint_seconds", "recovery", "60", "recovery { durability: log }", ""},
    {"failure_seconds", "recovery", "60",
     "recovery { durability: checkpoint checkpoint_seconds: 0 }", ""},
    {"server_return_seconds", "recovery", "600", "recovery { durability: log }", ""},
    {"keep_checkpoints", "recovery", "2", "recovery { durability: log }", ""},
    {"keep_every", "recovery", "100", "recovery { durability: log }", ""},
    {"keep_best", "recovery", "3", "recovery { durability: log }", ""},
    {"keep_log", "recovery", "true", "recovery { durability: log }",
     "recovery { durability: checkpoint }"},
};

// Returns the job file TEXT with the field of the test case C added.
std::string With(const Case& c, const std::string& text) {
  JobConfig config = Parsed(text);
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(
      std::string(c.section) + " { " + c.field + ": " + c.value + " }", &config));
  return config.DebugString();
}

TEST(ApplicabilityTest, AGivenFieldWithoutEffectIsRefusedEvenWithItsDefault) {
  std::set<std::string> fields;
  for (const Case& c : kCases) {
    EXPECT_EQ(Useless(With(c, c.with_effect)).find(std::string(c.field) + ": "), std::string::npos)
        << c.field << " with " << c.with_effect;
    EXPECT_NE(Useless(With(c, c.without_effect)).find(std::string(c.field) + ": only valid with "),
              std::string::npos)
        << c.field << " with " << c.without_effect;
    fields.insert(c.field);
  }
  EXPECT_EQ(fields.size(), 71u);
}

TEST(ApplicabilityTest, EveryConditionOfTheTableIsTested) {
  std::set<std::string> tested;
  for (const Case& c : kCases) tested.insert(c.field);
  for (const Field& field : Settings(*JobConfig::descriptor())) {
    // A field that has no effect in one of these jobs depends on a condition, so kCases must test
    // it.
    for (const char* job : {"", "consistency { mode: ssp }", "compression { push: fastest }"}) {
      if (!Applies(field.name(), Parsed(job))) {
        EXPECT_EQ(tested.count(field.name()), 1u) << field.name();
      }
    }
  }
}

TEST(ApplicabilityTest, AMessageShowsTheSettingsThatDecide) {
  EXPECT_EQ(Useless("compression { density: 0.01 }"),
            "density: only valid with push: topk, randomk or dct_topk (got push: fp32)");
  EXPECT_EQ(
      Useless("optimization { momentum: 0.9 optimizer: adam }"),
      "momentum: only valid with optimizer: momentum, nesterov or lars (got optimizer: adam)");
  EXPECT_EQ(
      Useless("optimization { epsilon: 1 }"),
      "epsilon: only valid with optimizer: adam, adamw, adagrad or lamb (got optimizer: sgd)");
  EXPECT_EQ(Useless("compression { publish_every: 2 pull: delta }"),
            "publish_every: only valid with pull: delta or delta_CODEC and mode: ssp or async (got "
            "pull: delta, mode: sync)");
  EXPECT_EQ(Useless("compression { warmup_density: 0.5 push: topk }"),
            "warmup_density: only valid with a density_warmup above 0 (got density_warmup: 0)");
}

TEST(ApplicabilityTest, EveryFieldWithoutEffectIsReported) {
  const Problems problems =
      UselessFields(Parsed("consistency { slack: 1 backup: 1 } task { model_file: 'x' }"));
  EXPECT_EQ(problems.list().size(), 3u);
}

TEST(ApplicabilityTest, AFlagThatReplacesADeciderDropsTheFieldsOfTheFile) {
  JobConfig config =
      Parsed("optimization { optimizer: sgd momentum: 0.9 schedule: step decay_at: 0.5 }");
  FieldPlaces places = {{"optimizer", "--optimizer"}, {"momentum", "f:1:2"}, {"decay_at", "f:1:3"}};
  DropReplacedFields(config, places);
  EXPECT_FALSE(config.optimization().has_momentum());
  EXPECT_EQ(config.optimization().decay_at_size(), 1);
  EXPECT_EQ(places, (FieldPlaces{{"optimizer", "--optimizer"}, {"decay_at", "f:1:3"}}));
}

TEST(ApplicabilityTest, AFieldWithoutEffectStaysIfTheFileAloneOrAFlagGaveIt) {
  JobConfig config = Parsed("optimization { momentum: 0.9 } compression { density: 0.1 }");
  FieldPlaces places = {{"momentum", "f:1:2"}, {"density", "--density"}, {"push", "--push"}};
  DropReplacedFields(config, places);
  EXPECT_TRUE(config.optimization().has_momentum());
  EXPECT_TRUE(config.compression().has_density());
  const Problems problems = UselessFields(config);
  EXPECT_EQ(problems.list().size(), 2u);
}

}  // namespace
}  // namespace thinwire
