#include "config/job_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "config/job.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

std::string SyntaxError(std::string_view text) {
  return std::string(ParseJobText(text, "job").status().message());
}

// Returns the problems that CheckJob finds in the job file TEXT. REQUIRES: TEXT has no syntax
// error.
std::string Problems(std::string_view text) {
  const auto job = ParseJobText(text, "job");
  EXPECT_TRUE(job.ok()) << job.status();
  if (!job.ok()) return "";
  return std::string(CheckJob(job->config, job->places).status().message());
}

TEST(JobTextTest, AnExperimentIsNamed) {
  EXPECT_EQ(SyntaxError("title: 'a' axis { name: 'mode' } job { servers: 2 }"),
            "job: not a job file (expected fields of proto/job.proto, got an experiment, which "
            "thinwire experiment run checks and runs)");
  EXPECT_THAT(SyntaxError("title: 'a' servers: 2"), HasSubstr("title: unknown field"));
}

TEST(JobTextTest, ACodecOfAnotherFieldIsAWrongValue) {
  EXPECT_THAT(SyntaxError("compression {\n  push: delta_fp8_e5m2\n}"),
              HasSubstr("job:2:3: push: wrong value (expected one of fp32, fp16, bf16, "));
  EXPECT_THAT(SyntaxError("compression { push: topk topk_values: randomk }"),
              HasSubstr("job:1:26: topk_values: wrong value (expected one of fp32, "));
  EXPECT_THAT(SyntaxError("parameter_group { match: 'a' }\nparameter_group { push: auto }"),
              HasSubstr("job:2:19: parameter_group[1].push: wrong value"));
}

TEST(JobTextTest, AGoodTextBecomesItsFields) {
  const auto job = ParseJobText(
      "servers: 2\nconsistency { mode: ssp workers: 4 slack: 3 }\n"
      "optimization {\n  schedule: step\n  decay_at: [0.5, 0.75]\n}\n",
      "job");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->config.servers(), 2);
  EXPECT_EQ(job->config.consistency().mode(), Consistency::Mode::ssp);
  EXPECT_EQ(job->config.consistency().slack(), 3);
  EXPECT_EQ(job->config.optimization().decay_at(1), 0.75);
  EXPECT_EQ(job->config.task().batch_size(), 32);
}

TEST(JobTextTest, AnUnknownFieldIsNamedWithItsPlaceAndTheNearestField) {
  EXPECT_EQ(SyntaxError("optimization {\n  learning_rat: 0.1\n}\n"),
            "job:2:3: learning_rat: unknown field (did you mean learning_rate?)");
  EXPECT_EQ(SyntaxError("optimisation { momentum: 0.5 }"),
            "job:1:1: optimisation: unknown field (did you mean optimization?)");
  EXPECT_EQ(SyntaxError("xyzzy: 1"), "job:1:1: xyzzy: unknown field");
}

TEST(JobTextTest, AFieldInTheWrongBracesIsSentToItsOwn) {
  EXPECT_EQ(SyntaxError("learning_rate: 0.1"),
            "job:1:1: learning_rate: not a field here (it belongs in optimization { })");
  EXPECT_EQ(SyntaxError("task {\n  servers: 2\n}"),
            "job:2:3: servers: not a field here (it belongs outside all braces)");
}

TEST(JobTextTest, AWrongValueNamesTheFieldAndTheExpectedValue) {
  EXPECT_EQ(
      SyntaxError("consistency {\n  workers: four\n}"),
      "job:2:3: workers: wrong value (expected a whole number from 0 to 4294967295, got four)");
  EXPECT_EQ(SyntaxError("servers: -1"),
            "job:1:1: servers: wrong value (expected a whole number from 0 to 4294967295, got -1)");
  EXPECT_EQ(SyntaxError("servers: 4294967296"),
            "job:1:1: servers: wrong value (expected a whole number from 0 to 4294967295, got "
            "4294967296)");
  EXPECT_EQ(SyntaxError("consistency: 3"),
            "job:1:1: consistency: wrong value (expected fields in braces, got 3)");
  EXPECT_EQ(SyntaxError("optimization {\n  decay_at: [0.5, \"x\"]\n}"),
            "job:2:3: decay_at: wrong value (expected a number, got \"x\")");
  EXPECT_EQ(SyntaxError("name: train"),
            "job:1:1: name: wrong value (expected text in quotes, got train)");
}

TEST(JobTextTest, AWrongBooleanMakesOneMessage) {
  EXPECT_EQ(SyntaxError("consistency {\n  ordered_fold: yes\n}\n"),
            "job:2:3: ordered_fold: wrong value (expected true or false, got yes)");
}

TEST(JobTextTest, AnEnumListsItsValuesAndTheNearest) {
  EXPECT_EQ(SyntaxError("consistency { mode: asynch workers: 2 }"),
            "job:1:15: mode: wrong value (expected one of sync, backup, ssp, async, got asynch; "
            "did you mean async?)");
  EXPECT_EQ(SyntaxError("consistency { mode: \"sync\" }"),
            "job:1:15: mode: wrong value (expected one of sync, backup, ssp, async, got \"sync\"; "
            "did you mean sync?)");
}

TEST(JobTextTest, EveryEnumSuggestsTheNearestName) {
  EXPECT_THAT(SyntaxError("optimization { optimizer: adma }"),
              HasSubstr("lars, lamb, average, sign_sgd, got adma; did you mean adam?"));
  EXPECT_THAT(SyntaxError("optimization { optimizer: tiger }"), HasSubstr("sign_sgd, got tiger)"));
  EXPECT_THAT(SyntaxError("optimization { schedule: cosin }"), HasSubstr("did you mean cosine?"));
  EXPECT_THAT(SyntaxError("task { model: resnet2 }"), HasSubstr("did you mean resnet20?"));
  EXPECT_THAT(SyntaxError("task { dataset: cifar }"), HasSubstr("fashion_mnist, cifar10"));
  EXPECT_THAT(SyntaxError("task { precision: bf61 }"), HasSubstr("did you mean bf16?"));
  EXPECT_THAT(SyntaxError("compression { push: fp8 }"), HasSubstr("fp8_e5m2"));
  EXPECT_THAT(SyntaxError("compression { auto_codecs: bf61 }"), HasSubstr("did you mean bf16?"));
  EXPECT_THAT(SyntaxError("compression { pull: delta_mp3 }"), HasSubstr("pull: wrong value"));
  EXPECT_THAT(SyntaxError("compression { topk_values: topk }"), HasSubstr("got topk"));
  EXPECT_THAT(SyntaxError("optimization { selection_rest: peers }"),
              HasSubstr("one of server, workers, got peers"));
}

TEST(JobTextTest, AFieldGivenTwiceIsAnError) {
  EXPECT_EQ(SyntaxError("servers: 1\nservers: 2\n"), "job:2:1: servers: given twice");
}

TEST(JobTextTest, TheParserStopsAtTheFirstMistake) {
  EXPECT_EQ(
      SyntaxError("servers: two\nconsistency { worker: 3 }\n"),
      "job:1:1: servers: wrong value (expected a whole number from 0 to 4294967295, got two)");
}

TEST(JobTextTest, AllProblemsOfATextThatParsesAreReportedInTheOrderOfTheFields) {
  EXPECT_EQ(
      Problems("compression { push: topk density: 2 }\n"
               "servers: 0 consistency { workers: 0 lease_seconds: -1 }\n"),
      "job:2:1: servers: out of range (expected 1 to 4096, got 0)\n"
      "job:2:26: workers: out of range (expected 1 to 65536, got 0)\n"
      "job:2:37: lease_seconds: out of range (expected above 0 and at most a year of seconds, "
      "got -1)\n"
      "job:1:26: density: out of range (expected above 0 and at most 1, got 2)");
}

TEST(JobTextTest, AnElementOfAListHasItsOwnPlace) {
  EXPECT_EQ(Problems("optimization {\n  schedule: step\n  decay_at: 0.5\n  decay_at: 7\n}"),
            "job:4:3: decay_at: out of range (expected 0 to 1, got 7)");
}

TEST(JobTextTest, EveryFieldOfALargeFileHasItsPlace) {
  constexpr size_t kCount = 60'000;
  std::string text = "optimization {\n";
  for (size_t i = 0; i < kCount; ++i) text += "\tdecay_at: 1\n";
  const auto job = ParseJobText(text + "}\n", "job");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->places.at("decay_at"), "job:2:2");
  EXPECT_EQ(job->places.at("decay_at[0]"), "job:2:2");
  EXPECT_EQ(job->places.at("decay_at[59999]"), "job:60001:2");
}

TEST(JobTextTest, ATabIsOneColumn) {
  EXPECT_EQ(SyntaxError("task {\n\t\tepocs: 1\n}\n"),
            "job:2:3: epocs: unknown field (did you mean epochs?)");
}

TEST(JobTextTest, BrokenTextEndsInAnErrorWithItsPlace) {
  for (const char* text : {"servers", "task {", "}", "task { epochs: 1 ", ":", "\"", "servers: \"",
                           "[[[", "<", "consistency { workers: \"a}\" }"}) {
    EXPECT_THAT(SyntaxError(text), HasSubstr("job:1:")) << text;
    EXPECT_THAT(SyntaxError(text), testing::Not(HasSubstr("\n"))) << text;
  }
}

TEST(JobTextTest, AFileIsReadAndNamedByItsPath) {
  const std::string path = testing::TempDir() + "/job.textproto";
  std::ofstream(path) << "servers: 1\nworker: 1\n";
  EXPECT_EQ(ReadJobFile(path).status().message(),
            path + ":2:1: worker: unknown field (did you mean workers?)");
  std::ofstream(path) << "servers: 2\n";
  EXPECT_EQ(ReadJobFile(path)->config.servers(), 2);
  EXPECT_EQ(ReadJobFile(path + ".not").status().code(), absl::StatusCode::kNotFound);
}

TEST(JobTextTest, AFileOfAnotherKindIsNamed) {
  const std::string path = testing::TempDir() + "/model.safetensors";
  std::ofstream(path) << std::string("\x10\0\0\0\0\0\0\0{\"x\"", 12);
  EXPECT_EQ(ReadJobFile(path).status().message(),
            path + ": not a job file (expected text as in examples/, got a safetensors file)");
}

TEST(JobTextTest, AParameterGroupHasThePlacesOfItsFields) {
  const auto job = ParseJobText(
      "optimization { weight_decay: 1 }\n"
      "parameter_group { match: 'a' weight_decay: 0 }\n"
      "parameter_group {\n  match: 'b'\n}\n",
      "job");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->config.parameter_group_size(), 2);
  EXPECT_EQ(job->places.at("weight_decay"), "job:1:16");
  EXPECT_EQ(job->places.at("parameter_group[0].weight_decay"), "job:2:30");
  EXPECT_EQ(job->places.at("parameter_group[1].match"), "job:4:3");
}

TEST(JobTextTest, MistakesInAParameterGroupAreFound) {
  EXPECT_EQ(SyntaxError("parameter_group { mach: 'a' }"),
            "job:1:19: mach: unknown field (did you mean match?)");
  EXPECT_EQ(SyntaxError("parameter_group { momentum: 1 }"),
            "job:1:19: momentum: not a field here (it belongs in optimization { })");
  EXPECT_EQ(SyntaxError("match: 'a'"),
            "job:1:1: match: not a field here (it belongs in parameter_group { })");
  EXPECT_THAT(SyntaxError("parameter_group { optimizer: larz }"),
              HasSubstr("got larz; did you mean lars?)"));
}

}  // namespace
}  // namespace thinwire
