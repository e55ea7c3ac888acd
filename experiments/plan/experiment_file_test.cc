#include "experiments/plan/experiment_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace thinwire::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kText[] = R"(name: "modes"
job {
  consistency { workers: 4 }
  optimization { schedule: step decay_at: [0.5, 0.75] }
  task { model: softmax seed: 5 epochs: 3 }
}
machines { compute { mean_seconds: 0.2 } worker_link { megabits_per_second: 100 } }
axis {
  name: "mode"
  setting { name: "sync" }
  setting { name: "ssp" job { consistency { mode: ssp slack: 2 } } }
  setting { name: "async" job { consistency { mode: async } } }
}
axis {
  name: "machines"
  setting { name: "equal" }
  setting {
    name: "one slow"
    job { optimization { decay_at: 0.9 } }
    machines { compute { slow_workers: 1 slow_factor: 3 } }
  }
}
seeds: 2
quick { job { task { epochs: 1 } } seeds: 1 tests: 5 without: "ssp" }
figure { only: "mode=ssp" }
figure { panels: "machines" }
claim { text: "ssp is better." better: "mode=ssp" worse: "mode=sync" }
claim { text: "async is better." better: "mode=async" worse: "mode=sync" }
)";

absl::StatusOr<Plan> Planned(const std::string& text, const PlanOptions& options = {}) {
  return PlanExperiment(text, "studies/modes.textproto", options);
}

std::string Problem(const std::string& text, const PlanOptions& options = {}) {
  return std::string(Planned(text, options).status().message());
}

// Returns kText with OLD_TEXT replaced by NEW_TEXT.
std::string With(const std::string& old_text, const std::string& new_text) {
  std::string text = kText;
  const size_t at = text.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  return text.replace(at, old_text.size(), new_text);
}

TEST(ExperimentFileTest, TheCasesAreAllCombinationsOfSettingsAndSeeds) {
  const auto plan = Planned(kText);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> names;
  for (const PlannedRun& run : plan->runs) {
    names.push_back(absl::StrCat(CaseName(plan->experiment, run.settings), ", seed ", run.seed));
  }
  EXPECT_THAT(
      names,
      ElementsAre("mode=sync, machines=equal, seed 5",  //
                  "mode=sync, machines=equal, seed 6", "mode=sync, machines=one slow, seed 5",
                  "mode=sync, machines=one slow, seed 6", "mode=ssp, machines=equal, seed 5",
                  "mode=ssp, machines=equal, seed 6", "mode=ssp, machines=one slow, seed 5",
                  "mode=ssp, machines=one slow, seed 6", "mode=async, machines=equal, seed 5",
                  "mode=async, machines=equal, seed 6", "mode=async, machines=one slow, seed 5",
                  "mode=async, machines=one slow, seed 6"));
}

TEST(ExperimentFileTest, ASettingReplacesFieldsAndWholeLists) {
  const auto plan = Planned(kText);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const RunSpec& equal = plan->runs[0].spec;
  EXPECT_THAT(equal.job.schedule.decay_at, ElementsAre(0.5, 0.75));
  EXPECT_EQ(equal.machines.compute().slow_workers(), 0u);
  const RunSpec& slow = plan->runs[3].spec;
  EXPECT_THAT(slow.job.schedule.decay_at, ElementsAre(0.9));
  EXPECT_EQ(slow.machines.compute().slow_factor(), 3);
  EXPECT_EQ(slow.machines.compute().mean_seconds(), 0.2);
  EXPECT_EQ(slow.machines.worker_link().megabits_per_second(), 100);
  EXPECT_EQ(slow.config.task().seed(), 6u);
  EXPECT_EQ(slow.job.task.seed, 6u);
  EXPECT_EQ(slow.folder, "studies");
  EXPECT_EQ(slow.tests, 20u);
}

TEST(ExperimentFileTest, QuickReplacesFieldsAndLeavesOutSettingsWithTheirFiguresAndClaims) {
  const auto plan = Planned(kText, {.quick = true});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->runs, SizeIs(4));
  EXPECT_EQ(plan->runs[0].spec.job.task.epochs, 1u);
  EXPECT_EQ(plan->runs[0].spec.tests, 5u);
  EXPECT_THAT(plan->experiment.axis(0).setting(), SizeIs(2));
  ASSERT_THAT(plan->experiment.figure(), SizeIs(1));
  EXPECT_EQ(plan->experiment.figure(0).panels(), "machines");
  ASSERT_THAT(plan->experiment.claim(), SizeIs(1));
  EXPECT_EQ(plan->experiment.claim(0).text(), "async is better.");
}

TEST(ExperimentFileTest, OnlyAndSeedsChooseRuns) {
  const auto plan =
      Planned(kText, {.only = {"mode=async", "mode=sync", "machines=equal"}, .seeds = 3});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->runs, SizeIs(6));
  EXPECT_THAT(plan->runs[0].settings, ElementsAre("sync", "equal"));
  EXPECT_THAT(plan->runs[3].settings, ElementsAre("async", "equal"));
  EXPECT_EQ(plan->runs[5].seed, 7u);
  EXPECT_THAT(Problem(kText, {.only = {"mode=asyc"}}),
              "--only: setting: unknown (expected sync, ssp or async, got \"asyc\"; did you mean "
              "async?)");
  EXPECT_THAT(Problem(kText, {.only = {"async"}}),
              "--only: wrong value (expected AXIS=SETTING, got \"async\")");
}

TEST(ExperimentFileTest, AMistakeInTheTextHasItsPlace) {
  EXPECT_EQ(Problem(With("epochs: 3", "epoch: 3")),
            "studies/modes.textproto:5:33: epoch: unknown field (did you mean epochs?)");
  EXPECT_EQ(Problem(With("mode: ssp", "mode: spp")),
            "studies/modes.textproto:11:45: mode: wrong value (expected one of sync, backup, ssp, "
            "async, got spp; did you mean ssp?)");
  EXPECT_THAT(Problem(std::string("\x1f\x8b\x08", 3)), HasSubstr("studies/modes.textproto:1:"));
}

TEST(ExperimentFileTest, TheSitesHaveAllMachinesAndDistances) {
  const auto problem = [](const std::string& sites) {
    return Problem(With("worker_link {", absl::StrCat(sites, " worker_link {")));
  };
  constexpr char kTwo[] =
      "site { name: \"a\" workers: 3 servers: 1 } site { name: \"b\" workers: 1 } ";
  constexpr char kFar[] = "distance { from: \"a\" to: \"b\" round_trip_ms: 80 } ";
  EXPECT_EQ(problem(absl::StrCat(kTwo, kFar)), "");
  EXPECT_THAT(problem(kTwo),
              HasSubstr("distance: missing (expected the distances of 1 pairs of sites, got 0)"));
  EXPECT_THAT(problem(absl::StrCat(kTwo, kFar, "distance { from: \"b\" to: \"a\" }")),
              HasSubstr("distance[1]: wrong value (expected each two sites once, got \"b\" and "
                        "\"a\")"));
  EXPECT_THAT(problem("site { name: \"a\" workers: 3 servers: 1 }"),
              HasSubstr("site: wrong number of workers (expected 4 at all sites together, got 3)"));
  EXPECT_THAT(
      problem("site { workers: 4 servers: 2 }"),
      HasSubstr("site[0].name: wrong value (expected another name for each site, got \"\")"));
  EXPECT_THAT(problem("site { name: \"a\" workers: 4 servers: 2 }"),
              HasSubstr("site: wrong number of servers (expected 1 at all sites together, got 2)"));
  EXPECT_THAT(problem(absl::StrCat("exchange: ring ", kTwo, kFar)),
              HasSubstr("site: only valid with exchange: servers (got exchange: ring)"));
}

TEST(ExperimentFileTest, AProblemOfACaseNamesThePlaceAndTheCaseOnce) {
  EXPECT_EQ(Problem(With("mode: ssp slack: 2", "slack: 2")),
            "studies/modes.textproto:11:45: slack: only valid with mode: ssp (got mode: sync) "
            "[case mode=ssp, machines=equal]");
  EXPECT_EQ(Problem(With("megabits_per_second: 100", "megabits_per_second: -1")),
            "studies/modes.textproto:7:56: machines.worker_link.megabits_per_second: out of range "
            "(expected 0 to 1e+09, got -1) [case mode=sync, machines=equal]");
  EXPECT_EQ(
      Problem(With("slow_workers: 1 slow_factor: 3 }", "} imposed_staleness: 4")),
      "studies/modes.textproto:20:28: machines.imposed_staleness: only valid with mode: async "
      "(got mode: sync) [case mode=sync, machines=one slow]\n"
      "studies/modes.textproto:20:28: machines.imposed_staleness: only valid with mode: async "
      "(got mode: ssp) [case mode=ssp, machines=one slow]");
  EXPECT_THAT(Problem(With("task {", "report: \"r.json\" task {")),
              HasSubstr("job.report: only valid outside an experiment (got \"r.json\")"));
}

TEST(ExperimentFileTest, AnExperimentOfLossesHasNoAccuracies) {
  const std::string script =
      With("model: softmax", "model: torchscript model_file: \"m.pt\" loss: script");
  EXPECT_TRUE(Planned(script + "target_loss: 2").ok()) << Problem(script);
  EXPECT_EQ(Problem(script + "target_accuracy: 0.5"),
            "studies/modes.textproto:29:1: target_accuracy: only valid with job.task.loss: "
            "cross_entropy (got loss: script, whose tests have no accuracy)");
  EXPECT_THAT(Problem(script + "figure { y: accuracy }"),
              HasSubstr("figure[2].y: only valid with"));
  EXPECT_THAT(Problem(script + "figure { y: busy }"),
              HasSubstr("figure[2].y: busy is only valid as y with kind: scan"));
  EXPECT_THAT(Problem(script + "figure { kind: time_to_accuracy }"),
              HasSubstr("figure[2].kind: only valid with target_loss (got none)"));
  EXPECT_THAT(
      Problem(script + "claim { better: \"mode=ssp\" worse: \"mode=sync\" measure: accuracy }"),
      HasSubstr("claim[2].measure: only valid with"));
  EXPECT_THAT(Problem(script + "target_loss: -1"),
              HasSubstr("target_loss: out of range (expected at least 0, got -1)"));
  EXPECT_THAT(Problem(std::string(kText) + "target_loss: 2"),
              HasSubstr("target_loss: only valid with job.task.loss: script (got cross_entropy"));
  EXPECT_THAT(Problem(With("setting { name: \"ssp\" job {",
                           "setting { name: \"ssp\" job { task { model: torchscript model_file: "
                           "\"m.pt\" loss: script }")),
              HasSubstr("job.task.loss: all cases have the one of the experiment's job (expected "
                        "cross_entropy, got script) [case mode=ssp"));
}

TEST(ExperimentFileTest, NamesAreUniqueAndExist) {
  EXPECT_THAT(Problem(With("\"ssp\" job", "\"sync\" job")),
              HasSubstr("setting: not a new name (expected each name once and no column of "
                        "runs.csv, got \"sync\")"));
  EXPECT_THAT(Problem(With("name: \"machines\"", "name: \"seed\"")),
              HasSubstr("axis: not a new name (expected each name once and no column of runs.csv, "
                        "got \"seed\")"));
  EXPECT_THAT(Problem(With("\"one slow\"", "\"a=b\"")), HasSubstr("setting: not a name"));
  EXPECT_THAT(Problem(With("panels: \"machines\"", "panels: \"machine\"")),
              HasSubstr(":26:10: figure[1].panels: axis: unknown (expected mode or machines, got "
                        "\"machine\"; did you mean machines?)"));
  EXPECT_THAT(Problem(With("worse: \"mode=sync\"", "worse: \"mode=sink\"")),
              HasSubstr("claim[0].worse: setting: unknown"));
  EXPECT_THAT(Problem(With("without: \"ssp\"", "without: \"spp\"")),
              HasSubstr("quick.without: unknown"));
  EXPECT_THAT(
      Problem(With("without: \"ssp\"", "without: [\"equal\", \"one slow\"]"), {.quick = true}),
      HasSubstr("axis \"machines\": no setting is left"));
  EXPECT_THAT(Problem(With("panels: \"machines\"", "kind: time_to_accuracy")),
              HasSubstr("figure[1].kind: only valid with target_accuracy (got none)"));
  EXPECT_THAT(Problem(With("name: \"modes\"", "name: \"Modes!\"")), HasSubstr("not a name"));
}

TEST(ExperimentFileTest, NumbersAreInRange) {
  EXPECT_THAT(Problem(With("seeds: 2", "seeds: 0")),
              HasSubstr("seeds: out of range (expected 1 to 1000, got 0)"));
  EXPECT_THAT(Problem(With("tests: 5", "tests: 0")), HasSubstr("quick.tests: out of range"));
  EXPECT_THAT(Problem(With("text: \"ssp is better.\"", "within: 2")),
              HasSubstr("claim[0].within: out of range"));
  EXPECT_THAT(Problem(kText, {.seeds = 0}), HasSubstr("--seeds: out of range"));
}

TEST(ExperimentFileTest, AnExperimentCanHaveATableOnly) {
  const auto plan = Planned("name: \"table\" efficiency { workers: 4 }");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->runs, IsEmpty());
  EXPECT_THAT(Problem("name: \"nothing\""), HasSubstr("job: missing"));
}

}  // namespace
}  // namespace thinwire::lab
