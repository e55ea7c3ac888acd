#include "config/job_difference.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace thinwire {
namespace {

JobConfig Parsed(const std::string& text) {
  JobConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::string Difference(const std::string& expected, const std::string& got,
                       Compared compared = Compared::kAllButTask) {
  return JobDifference(Parsed(expected), Parsed(got), compared).value_or("");
}

TEST(JobDifferenceTest, AnAbsentFieldEqualsItsDefault) {
  EXPECT_EQ(Difference("", "servers: 1 consistency { mode: sync } compression {}"), "");
  EXPECT_EQ(Difference("optimization { learning_rate: 0.01 }", ""), "");
}

TEST(JobDifferenceTest, BothValuesAreNamed) {
  EXPECT_EQ(
      Difference("optimization { learning_rate: 0.05 }", "optimization { learning_rate: 0.5 }"),
      "optimization.learning_rate differs from the job's (expected 0.05, got 0.5)");
  EXPECT_EQ(Difference("", "optimization { optimizer: adam }"),
            "optimization.optimizer differs from the job's (expected sgd, got adam)");
  EXPECT_EQ(Difference("name: 'a'", ""),
            "name differs from the job's (expected \"a\", got \"train\")");
  EXPECT_EQ(
      Difference("optimization { decay_at: [0.5] }", "optimization { decay_at: [0.5, 0.75] }"),
      "optimization.decay_at differs from the job's (expected [0.5], got [0.5, 0.75])");
}

TEST(JobDifferenceTest, EveryDifferenceIsNamed) {
  EXPECT_EQ(Difference("servers: 2 consistency { workers: 4 }", "servers: 3"),
            "servers differs from the job's (expected 2, got 3); "
            "consistency.workers differs from the job's (expected 4, got 1)");
}

TEST(JobDifferenceTest, TheTaskIsComparedApart) {
  const char* one = "task { seed: 1 batch_size: 8 }";
  const char* other = "task { seed: 2 batch_size: 8 }";
  EXPECT_EQ(Difference(one, other), "");
  EXPECT_EQ(Difference(one, other, Compared::kTask),
            "task.seed differs from the job's (expected 1, got 2)");
  EXPECT_EQ(Difference("servers: 2", "servers: 3", Compared::kTask), "");
}

TEST(JobDifferenceTest, SettingsOfAProcessAreNotCompared) {
  const char* here = "straggler: '0:1s' silence_seconds: 5 report: 'a.json'";
  EXPECT_EQ(Difference(here, ""), "");
  EXPECT_EQ(Difference("task { device: 'cpu' threads: 2 data_dir: '/a' precision: bf16 }",
                       "task { model_file: 'x' }", Compared::kTask),
            "");
}

TEST(JobDifferenceTest, AnUnknownFieldIsNamedByItsNumber) {
  JobConfig newer;
  newer.GetReflection()->MutableUnknownFields(&newer)->AddVarint(77, 1);
  EXPECT_EQ(JobDifference(JobConfig(), newer, Compared::kAllButTask),
            "unknown field differs from the job's (expected none, got number 77)");
  EXPECT_EQ(JobDifference(newer, newer, Compared::kAllButTask), std::nullopt);
  Task* task = newer.mutable_task();
  task->GetReflection()->MutableUnknownFields(task)->AddVarint(78, 1);
  EXPECT_EQ(JobDifference(JobConfig(), newer, Compared::kTask),
            "task.unknown field differs from the job's (expected none, got number 78)");
}

TEST(JobDifferenceTest, AnUnknownEnumValueIsADifference) {
  // The job of a newer program, with optimizer number 1000.
  JobConfig newer;
  ASSERT_TRUE(newer.ParseFromString(std::string("\x22\x03\x08\xe8\x07", 5)));
  EXPECT_EQ(JobDifference(JobConfig(), newer, Compared::kAllButTask),
            "optimization.unknown field differs from the job's (expected none, got number 1)");
}

TEST(JobDifferenceTest, UnknownFieldsOfAllMessagesAreCompared) {
  int messages = 0;
  const auto& type = *JobConfig::descriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const auto& field = *type.field(i);
    if (field.message_type() == nullptr || field.is_repeated()) continue;
    ++messages;
    JobConfig newer;
    auto* message = newer.GetReflection()->MutableMessage(&newer, &field);
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(79, 1);
    EXPECT_EQ(
        JobDifference(JobConfig(), newer,
                      field.name() == "task" ? Compared::kTask : Compared::kAllButTask),
        field.name() + ".unknown field differs from the job's (expected none, got number 79)");
  }
  EXPECT_EQ(messages, 5);
}

TEST(JobDifferenceTest, ThePageNamesTheFieldsThatAreNotCompared) {
  std::ifstream file("docs/configuration.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t begin = page.find("- Not compared, because");
  ASSERT_NE(begin, page.npos);
  const std::string text = page.substr(begin, page.find("\n\n", begin) - begin);
  std::vector<std::string> documented;
  for (size_t open = text.find('`'); open != text.npos;) {
    const size_t close = text.find('`', open + 1);
    documented.push_back(text.substr(open + 1, close - open - 1));
    open = text.find('`', close + 1);
  }
  EXPECT_THAT(documented, testing::UnorderedElementsAreArray(FieldsNotCompared()));
}

TEST(JobDifferenceTest, ParameterGroupsAreCompared) {
  JobConfig one, other;
  one.add_parameter_group()->set_match("*.bias");
  other = one;
  EXPECT_EQ(JobDifference(one, other, Compared::kAllButTask), std::nullopt);
  other.mutable_parameter_group(0)->set_weight_decay(0);
  EXPECT_EQ(JobDifference(one, other, Compared::kAllButTask),
            "parameter_group differs from the job's (expected { match: \"*.bias\" }, got { match: "
            "\"*.bias\" weight_decay: 0 })");
  EXPECT_EQ(JobDifference(JobConfig(), one, Compared::kTask), std::nullopt);
}

}  // namespace
}  // namespace thinwire
