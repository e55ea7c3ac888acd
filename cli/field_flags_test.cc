#include "cli/field_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/config.pb.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FieldFlagsTest : public testing::Test {
 protected:
  FieldFlagsTest() : flags_(*TrainConfig::descriptor(), ConfigFieldDocs(), app_) {
    app_.allow_extras();
  }

  // In the order of a command line.
  absl::Status Parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    app_.parse(words);
    if (auto extras = CheckNoExtras(app_); !extras.ok()) return extras;
    return flags_.Apply(config_, places_);
  }

  CLI::App app_;
  FieldFlags flags_;
  TrainConfig config_;
  FieldPlaces places_;
};

TEST_F(FieldFlagsTest, EveryFieldIsAFlagWhereverItStands) {
  const auto status =
      Parse({"--servers", "2", "--mode=ssp", "--slack", "3", "--learning_rate", "1e-3", "--report",
             "r.json", "--seed", "18446744073709551615", "--error_feedback", "false"});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config_.servers(), 2);
  EXPECT_EQ(config_.consistency().mode(), "ssp");
  EXPECT_EQ(config_.consistency().slack(), 3);
  EXPECT_EQ(config_.optimization().learning_rate(), 1e-3);
  EXPECT_EQ(config_.report(), "r.json");
  EXPECT_EQ(config_.task().seed(), 18446744073709551615u);
  EXPECT_FALSE(config_.compression().error_feedback());
  EXPECT_EQ(places_.at("slack"), "--slack");
}

TEST_F(FieldFlagsTest, ABareFlagIsTrue) {
  ASSERT_TRUE(Parse({"--ordered_fold", "--epochs", "2"}).ok());
  EXPECT_TRUE(config_.consistency().ordered_fold());
  EXPECT_EQ(config_.task().epochs(), 2);
}

TEST_F(FieldFlagsTest, ABooleanTakesItsWordInEitherWay) {
  ASSERT_TRUE(Parse({"--ordered_fold", "true", "--error_feedback=false"}).ok());
  EXPECT_TRUE(config_.consistency().ordered_fold());
  EXPECT_FALSE(config_.compression().error_feedback());
}

TEST_F(FieldFlagsTest, ARepeatedFieldRepeatsAndReplacesTheFiles) {
  config_.mutable_optimization()->add_decay_at(0.1);
  places_ = {{"decay_at", "job:1:1"}, {"decay_at[0]", "job:1:1"}};
  ASSERT_TRUE(Parse({"--decay_at", "0.5", "--straggler", "1:5ms", "--decay_at", "0.75"}).ok());
  EXPECT_THAT(config_.optimization().decay_at(), ElementsAre(0.5, 0.75));
  EXPECT_THAT(config_.straggler(), ElementsAre("1:5ms"));
  EXPECT_EQ(places_, (FieldPlaces{{"decay_at", "--decay_at"}, {"straggler", "--straggler"}}));
}

TEST_F(FieldFlagsTest, OfAFlagGivenTwiceTheLastCounts) {
  ASSERT_TRUE(Parse({"--epochs", "2", "--epochs", "3"}).ok());
  EXPECT_EQ(config_.task().epochs(), 3);
}

TEST_F(FieldFlagsTest, WhatIsNotGivenStaysUnset) {
  ASSERT_TRUE(Parse({"--epochs", "2"}).ok());
  EXPECT_FALSE(config_.has_servers());
  EXPECT_FALSE(config_.has_consistency());
}

TEST_F(FieldFlagsTest, EveryWrongValueIsToldAtOnce) {
  EXPECT_EQ(Parse({"--epochs", "two", "--learning_rate", "fast", "--servers", "-1",
                   "--ordered_fold=maybe"})
                .message(),
            "--servers: want a whole number from 0 to 4294967295, got -1\n"
            "--ordered_fold: want true or false, got maybe\n"
            "--learning_rate: want a number, got fast\n"
            "--epochs: want a whole number from 0 to 4294967295, got two");
}

TEST_F(FieldFlagsTest, AnUnknownFlagIsToldTheNearest) {
  EXPECT_EQ(Parse({"--learning_rat", "0.1"}).message(),
            "--learning_rat: unknown; did you mean --learning_rate?");
  EXPECT_EQ(Parse({"--learning-rate=0.1"}).message(),
            "--learning-rate: unknown; did you mean --learning_rate?");
  EXPECT_EQ(Parse({"fast"}).message(), "want flags, got \"fast\"");
}

TEST_F(FieldFlagsTest, HelpTellsTheFieldsWordsAndDefault) {
  const std::string help = app_.help();
  EXPECT_THAT(help, HasSubstr("--batch_size COUNT"));
  EXPECT_THAT(help, HasSubstr("Examples of one worker's step. Default: 32"));
}

}  // namespace
}  // namespace thinwire
