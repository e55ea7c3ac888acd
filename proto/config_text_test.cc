#include "proto/config_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace thinwire {
namespace {

using testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  return std::string(ParseConfig<TrainConfig>(text, "job").status().message());
}

TEST(ConfigTextTest, AGoodTextBecomesItsFields) {
  const auto config = ParseConfig<TrainConfig>(
      "servers: 2\nconsistency { mode: \"ssp\" workers: 4 slack: 3 }\n"
      "optimization {\n  schedule: \"step\"\n  decay_at: [0.5, 0.75]\n}\n",
      "job");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->servers(), 2);
  EXPECT_EQ(config->consistency().slack(), 3);
  EXPECT_EQ(config->optimization().decay_at(1), 0.75);
  EXPECT_EQ(config->task().batch_size(), 32);
}

TEST(ConfigTextTest, AnUnknownFieldIsNamedWithItsPlaceAndTheNearestOne) {
  EXPECT_EQ(ErrorOf("optimization {\n  learning_rat: 0.1\n}\n"),
            "job:2:3: field \"learning_rat\" is unknown; did you mean \"learning_rate\"?");
  EXPECT_EQ(ErrorOf("optimisation { momentum: 0.5 }"),
            "job:1:1: field \"optimisation\" is unknown; did you mean \"optimization\"?");
}

TEST(ConfigTextTest, AFieldInTheWrongBracesIsSentToItsOwn) {
  EXPECT_EQ(ErrorOf("learning_rate: 0.1"),
            "job:1:1: field \"learning_rate\" is unknown here; it belongs in optimization { }");
  EXPECT_EQ(ErrorOf("task { servers: 2 }"),
            "job:1:8: field \"servers\" is unknown here; it belongs outside all braces");
}

TEST(ConfigTextTest, AWrongTypeNamesTheFieldAndWhatWasWanted) {
  EXPECT_EQ(ErrorOf("consistency {\n  workers: four\n}"),
            "job:2:12: field \"workers\": want a whole number from 0 to 4294967295, got four");
  EXPECT_EQ(ErrorOf("servers: -1"),
            "job:1:10: field \"servers\": want a whole number from 0 to 4294967295, got -1");
  EXPECT_EQ(
      ErrorOf("servers: 4294967296"),
      "job:1:10: field \"servers\": want a whole number from 0 to 4294967295, got 4294967296");
  EXPECT_EQ(ErrorOf("consistency { mode: sync }"),
            "job:1:21: field \"mode\": want a text in quotes, got sync");
  EXPECT_EQ(ErrorOf("consistency: 3"),
            "job:1:14: field \"consistency\": want fields in braces, got 3");
  EXPECT_THAT(ErrorOf("consistency {\n  ordered_fold: 7\n}"),
              HasSubstr("field \"ordered_fold\": want true or false, got 7"));
  EXPECT_EQ(ErrorOf("optimization {\n  decay_at: [0.5, \"x\"]\n}"),
            "job:2:19: field \"decay_at\": want a number, got \"x\"");
}

TEST(ConfigTextTest, AFieldGivenTwiceIsAnError) {
  EXPECT_EQ(ErrorOf("servers: 1\nservers: 2\n"), "job:2:1: field \"servers\" is given twice");
}

TEST(ConfigTextTest, EveryMistakeIsToldAtOnce) {
  EXPECT_EQ(
      ErrorOf("servers: two\n"
              "consistency {\n"
              "  worker: 3\n"
              "  slack: 0.5\n"
              "  mode: \"asynch\"\n"
              "}\n"
              "compression { density: 2 }\n"),
      "job:1:10: field \"servers\": want a whole number from 0 to 4294967295, got two\n"
      "job:3:3: field \"worker\" is unknown; did you mean \"workers\"?\n"
      "job:4:10: field \"slack\": want a whole number from 0 to 4294967295, got 0.5\n"
      "job:5:3: field \"mode\": want one of sync, backup, ssp, async, got \"asynch\"; did you mean "
      "\"async\"?\n"
      "job:7:15: field \"density\": want a number above 0 and at most 1, got 2");
}

TEST(ConfigTextTest, AMistakeBeforeAClosingBraceHidesNoLaterOne) {
  const auto config = ParseConfig<TrainConfig>(
      "servers: 0 consistency { workers: four }\ncompression { density: 2 }", "f");
  EXPECT_EQ(config.status().message(),
            "f:1:35: field \"workers\": want a whole number from 0 to 4294967295, got four\n"
            "f:1:1: field \"servers\": want at least 1, got 0\n"
            "f:2:15: field \"density\": want a number above 0 and at most 1, got 2");
}

TEST(ConfigTextTest, ABraceInAMistakenQuoteIsNoBrace) {
  const auto config =
      ParseConfigText<TrainConfig>("consistency { workers: \"a}\" }\nservers: \"b\"", "f");
  EXPECT_EQ(config.status().message(),
            "f:1:24: field \"workers\": want a whole number from 0 to 4294967295, got \"a}\"");
}

TEST(ConfigTextTest, AMistakenFieldMakesNoSecondMistakeElsewhere) {
  // Were the pair checked, mode would seem to be sync, where slack has no place.
  EXPECT_EQ(ErrorOf("consistency {\n  mode: ssp\n  slack: 2\n}\n"),
            "job:2:9: field \"mode\": want a text in quotes, got ssp");
}

TEST(ConfigTextTest, ATabIsOneColumn) {
  EXPECT_EQ(ErrorOf("task {\n\t\tepocs: 1\n}\n"),
            "job:2:3: field \"epocs\" is unknown; did you mean \"epochs\"?");
}

TEST(ConfigTextTest, BrokenTextEndsInAnErrorWithItsPlace) {
  for (const char* text :
       {"servers", "task {", "}", "task { epochs: 1 ", ":", "\"", "servers: \"", "[[[", "<"}) {
    const auto config = ParseConfig<TrainConfig>(text, "job");
    EXPECT_FALSE(config.ok()) << text;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr("job:1:")) << text;
  }
}

TEST(ConfigTextTest, PlacesAreKeptForALaterCheck) {
  const auto text = ParseConfigText<TrainConfig>(
      "consistency {\n  backup: 2\n}\noptimization { decay_at: 0.5 decay_at: 0.7 }\n", "job");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->places.at("backup"), "job:2:3");
  EXPECT_EQ(text->places.at("decay_at[1]"), "job:4:30");
}

TEST(ConfigTextTest, AFileIsReadAndCalledByItsPath) {
  const std::string path = testing::TempDir() + "/worker.textproto";
  std::ofstream(path) << "servers: \"127.0.0.1:80\"\nworker: 1\n";
  EXPECT_EQ(ReadConfig<WorkerConfig>(path).status().message(),
            path + ":2:1: field \"worker\": want less than workers (1), got 1");
  EXPECT_TRUE(ReadConfigText<WorkerConfig>(path).ok());
  EXPECT_EQ(ReadConfig<WorkerConfig>(path + ".not").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace thinwire
