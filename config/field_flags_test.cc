#include "config/field_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "config/command_flags.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FieldFlagsTest : public testing::Test {
 protected:
  FieldFlagsTest() : flags_(app_) { app_.allow_extras(); }
  ~FieldFlagsTest() override {
    for (const std::string& name : environment_) unsetenv(name.c_str());
  }

  void SetEnvironment(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), /*replace=*/1);
    environment_.push_back(name);
  }

  // Parses WORDS, the words of a command line in their order, and applies the flags to config_.
  absl::Status Parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    app_.parse(words);
    if (auto extras = CheckNoExtras(app_); !extras.ok()) return extras;
    return flags_.Apply(config_, places_);
  }

  std::vector<std::string> environment_;
  CLI::App app_;
  FieldFlags flags_;
  JobConfig config_;
  FieldPlaces places_;
};

TEST_F(FieldFlagsTest, TheRecipeIsReplacedAfterTheFlags) {
  config_.mutable_compression()->set_recipe(Compression::Recipe::sparse);
  places_ = {{"recipe", "job:2:5"}};
  ASSERT_TRUE(Parse({"--density", "0.02", "--pull", "fp16"}).ok());
  EXPECT_EQ(config_.compression().push(), Compression::Codec::topk);
  EXPECT_EQ(config_.compression().density(), 0.02);
  EXPECT_EQ(config_.compression().pull(), Compression::Codec::fp16);
  EXPECT_FALSE(config_.compression().has_recipe());
  EXPECT_EQ(places_.at("push"), "job:2:5: recipe: sparse");
  EXPECT_EQ(places_.at("density"), "--density");
}

TEST_F(FieldFlagsTest, AFlagReplacesTheRecipeOfAFile) {
  config_.mutable_compression()->set_recipe(Compression::Recipe::sparse);
  places_ = {{"recipe", "job:2:5"}};
  ASSERT_TRUE(Parse({"--recipe", "none"}).ok());
  EXPECT_FALSE(config_.compression().has_push());
}

TEST_F(FieldFlagsTest, TheHelpListsTheSettingsOfTheRecipe) {
  EXPECT_THAT(app_.get_option("--recipe")->get_description(),
              HasSubstr("sparse: lazy_slots true, push topk, "));
}

TEST_F(FieldFlagsTest, EveryFieldIsAFlagInWhateverMessageItIs) {
  const auto status = Parse({"--servers", "2", "--mode=ssp", "--slack", "3", "--learning_rate",
                             "1e-3", "--report", "r.json", "--seed", "18446744073709551615",
                             "--error_feedback", "false", "--push", "auto"});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config_.servers(), 2);
  EXPECT_EQ(config_.consistency().mode(), Consistency::Mode::ssp);
  EXPECT_EQ(config_.consistency().slack(), 3);
  EXPECT_EQ(config_.optimization().learning_rate(), 1e-3);
  EXPECT_EQ(config_.report(), "r.json");
  EXPECT_EQ(config_.task().seed(), 18446744073709551615u);
  EXPECT_FALSE(config_.compression().error_feedback());
  EXPECT_EQ(config_.compression().push(), Compression::Codec::auto_);
  EXPECT_EQ(places_.at("slack"), "--slack");
}

TEST_F(FieldFlagsTest, ABareBooleanFlagIsTrue) {
  ASSERT_TRUE(Parse({"--ordered_fold", "--epochs", "2"}).ok());
  EXPECT_TRUE(config_.consistency().ordered_fold());
  EXPECT_EQ(config_.task().epochs(), 2);
}

TEST_F(FieldFlagsTest, ABooleanFlagTakesAWord) {
  ASSERT_TRUE(Parse({"--ordered_fold", "true", "--error_feedback=false"}).ok());
  EXPECT_TRUE(config_.consistency().ordered_fold());
  EXPECT_FALSE(config_.compression().error_feedback());
}

TEST_F(FieldFlagsTest, ARepeatedFlagReplacesTheValuesOfTheFile) {
  config_.mutable_optimization()->add_decay_at(0.1);
  places_ = {{"decay_at", "job:1:1"}, {"decay_at[0]", "job:1:1"}};
  ASSERT_TRUE(Parse({"--decay_at", "0.5", "--straggler", "1:5ms", "--decay_at", "0.75"}).ok());
  EXPECT_THAT(config_.optimization().decay_at(), ElementsAre(0.5, 0.75));
  EXPECT_THAT(config_.straggler(), ElementsAre("1:5ms"));
  EXPECT_EQ(places_, (FieldPlaces{{"decay_at", "--decay_at"}, {"straggler", "--straggler"}}));
}

TEST_F(FieldFlagsTest, TheLastOfTwoEqualFlagsCounts) {
  ASSERT_TRUE(Parse({"--epochs", "2", "--epochs", "3"}).ok());
  EXPECT_EQ(config_.task().epochs(), 3);
}

TEST_F(FieldFlagsTest, AFieldWithoutFlagStaysAbsent) {
  ASSERT_TRUE(Parse({"--epochs", "2"}).ok());
  EXPECT_FALSE(config_.has_servers());
  EXPECT_FALSE(config_.has_consistency());
}

TEST_F(FieldFlagsTest, TheEnvironmentReplacesTheFileAndAFlagReplacesTheEnvironment) {
  SetEnvironment("THINWIRE_EPOCHS", "5");
  SetEnvironment("THINWIRE_SERVERS", "3");
  SetEnvironment("THINWIRE_DECAY_AT", "0.25,0.5");
  SetEnvironment("THINWIRE_ORDERED_FOLD", "true");
  config_.set_servers(2);
  config_.mutable_task()->set_epochs(2);
  const auto status = Parse({"--epochs", "7"});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config_.task().epochs(), 7);
  EXPECT_EQ(config_.servers(), 3);
  EXPECT_TRUE(config_.consistency().ordered_fold());
  EXPECT_THAT(config_.optimization().decay_at(), ElementsAre(0.25, 0.5));
  EXPECT_EQ(places_.at("epochs"), "--epochs");
  EXPECT_EQ(places_.at("servers"), "THINWIRE_SERVERS");
}

TEST_F(FieldFlagsTest, AWrongVariableIsNamed) {
  SetEnvironment("THINWIRE_MODE", "asynch");
  EXPECT_EQ(Parse({}).message(),
            "THINWIRE_MODE: wrong value (expected one of sync, backup, ssp, async, got asynch; did "
            "you mean async?)");
}

TEST_F(FieldFlagsTest, EveryWrongValueIsReported) {
  EXPECT_EQ(Parse({"--epochs", "two", "--learning_rate", "fast", "--servers", "-1",
                   "--ordered_fold=maybe"})
                .message(),
            "--servers: wrong value (expected a whole number from 0 to 4294967295, got -1)\n"
            "--ordered_fold: wrong value (expected true or false, got maybe)\n"
            "--learning_rate: wrong value (expected a number, got fast)\n"
            "--epochs: wrong value (expected a whole number from 0 to 4294967295, got two)");
}

TEST_F(FieldFlagsTest, AnUnknownFlagIsReportedWithTheNearest) {
  EXPECT_EQ(Parse({"--learning_rat", "0.1"}).message(),
            "--learning_rat: unknown flag (did you mean --learning_rate?)");
  EXPECT_EQ(Parse({"--learning-rate=0.1"}).message(),
            "--learning-rate: unknown flag (did you mean --learning_rate?)");
  EXPECT_EQ(Parse({"fast"}).message(),
            "\"fast\": not a flag (expected --NAME, or --config FILE for a job file)");
}

TEST_F(FieldFlagsTest, HelpShowsTheCommentTheValuesAndTheDefault) {
  const std::string help = app_.help();
  EXPECT_THAT(help, HasSubstr("--batch_size COUNT"));
  EXPECT_THAT(help, HasSubstr("The number of examples in one step of one worker. Default: 32"));
  EXPECT_THAT(help, HasSubstr("--mode sync|backup|ssp|async"));
  EXPECT_THAT(help, HasSubstr("delta_fp8_e5m2"));
}

TEST(FieldFlagsOnlyTest, OnlyTheNamedFieldsHaveFlags) {
  CLI::App app;
  const FieldFlags flags(app, {"device", "threads"});
  EXPECT_NE(app.get_option_no_throw("--device"), nullptr);
  EXPECT_NE(app.get_option_no_throw("--threads"), nullptr);
  EXPECT_EQ(app.get_option_no_throw("--epochs"), nullptr);
}

}  // namespace
}  // namespace thinwire
