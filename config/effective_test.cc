#include "config/effective.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/job.h"
#include "config/job_text.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::Not;

JobConfig Parsed(const std::string& text) {
  JobConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

TEST(EffectiveTest, DefaultsAreShownWhereTheyHaveAnEffect) {
  const std::string text = EffectiveText(Parsed("task { epochs: 7 } straggler: '0:1s'"));
  EXPECT_THAT(text, HasSubstr("  epochs: 7\n"));
  EXPECT_THAT(text, HasSubstr("consistency {\n  mode: sync\n"));
  EXPECT_THAT(text, HasSubstr("straggler: \"0:1s\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("slack")));
  EXPECT_THAT(text, Not(HasSubstr("density")));
  EXPECT_THAT(EffectiveText(Parsed("compression { push: topk }")), HasSubstr("  density: 0.01\n"));
}

TEST(EffectiveTest, TheTextIsAValidJobFileWithTheSameMeaning) {
  for (const char* text :
       {"", "compression { push: topk pull: delta_topk density_warmup: 0.1 }",
        "consistency { mode: ssp workers: 4 } compression { pull: delta push: auto }",
        "optimization { optimizer: adam schedule: step decay_at: 0.25 epsilon: 1e-12 }",
        "optimization { gradient_selection: gtopk }", "task { data_dir: 'a \"b\" \\\\ c' }",
        "task { model: torchscript model_file: 'm.pt' precision: fp16 }"}) {
    const JobConfig config = Parsed(text);
    const auto again = ParseJobText(EffectiveText(config), "again");
    ASSERT_TRUE(again.ok()) << again.status();
    const auto spec = CheckJob(again->config);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(*spec, *CheckJob(config)) << text;
    EXPECT_EQ(EffectiveJson(again->config), EffectiveJson(config));
  }
}

TEST(EffectiveTest, TheJsonHasTheSameFields) {
  const auto json =
      EffectiveJson(Parsed("compression { push: auto auto_codecs: bf16 } report: 'r'"));
  EXPECT_EQ(json["servers"], 1);
  EXPECT_EQ(json["report"], "r");
  EXPECT_EQ(json["consistency"]["mode"], "sync");
  EXPECT_EQ(json["consistency"]["ordered_fold"], false);
  EXPECT_EQ(json["compression"]["auto_codecs"][0], "bf16");
  EXPECT_EQ(json["optimization"]["learning_rate"], 0.01);
  EXPECT_FALSE(json["consistency"].contains("slack"));
}

TEST(EffectiveTest, TheChangedTextHasOnlySettingsThatDifferFromTheirDefaults) {
  EXPECT_EQ(ChangedText(Parsed("")), "");
  EXPECT_EQ(ChangedText(Parsed("servers: 1 consistency { mode: sync workers: 1 }")), "");
  EXPECT_EQ(ChangedText(Parsed("name: 'a' servers: 1 straggler: '0:1s' straggler: '1:1s' "
                               "task { epochs: 2 model: mlp seed: 1 } compression { push: fp32 } "
                               "optimization { schedule: step decay_at: 0.5 }")),
            "name: \"a\"\n"
            "optimization { schedule: step decay_at: 0.5 }\n"
            "task { model: mlp epochs: 2 }\n"
            "straggler: \"0:1s\" straggler: \"1:1s\"\n");
}

TEST(EffectiveTest, ATextThatIsNotUtf8IsPrinted) {
  JobConfig config;
  config.set_report("\xff");
  EXPECT_THAT(EffectiveText(config), HasSubstr("report: "));
}

TEST(EffectiveTest, ParameterGroupsArePrinted) {
  const JobConfig config =
      Parsed("parameter_group { match: 'a' } parameter_group { density: 0.5 }");
  EXPECT_THAT(EffectiveText(config), HasSubstr("parameter_group {\n  density: 0.5\n}\n"));
  EXPECT_EQ(EffectiveJson(config)["parameter_group"][0]["match"], "a");
  EXPECT_EQ(ChangedText(config),
            "parameter_group { match: \"a\" } parameter_group { density: 0.5 }\n");
}

}  // namespace
}  // namespace thinwire
