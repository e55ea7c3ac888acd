// Golden stories: one short run for each kind of recovery. stories.txt contains what the processes
// do, and each push with its verdict; the numbers at the beginning of lines are ticks.
//
// With THINWIRE_PRINT_STORIES=1, the test prints the stories of the runs, in the format of the
// file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/simulation/job.h"
#include "tests/simulation/simulation.h"

namespace thinwire::simulation {
namespace {

using Kind = ScriptedFault::Kind;

Job StoryJob(const Rule& rule, Durability durability, uint32_t server_count) {
  Job job;
  job.rule = rule;
  job.durability = durability;
  job.push = {.id = CodecId::kTopK, .density = 0.125};
  job.server_count = job.shard_count = server_count;
  job.last = Step{8};
  Complete(job);
  return job;
}

// Returns the lines of TRACE that tell the story. A push becomes "s0: w1/1 pushes step 3: accept".
std::string StoryOf(const std::string& trace) {
  const std::regex push(
      R"((\d+) (s\d) shard \d: push .* -> (w\d/\d+) step (\d+): ([a-z]+(?: again)?).*)");
  std::istringstream lines(trace);
  std::ostringstream story;
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, push)) {
      story << match[1] << " " << match[2] << ": " << match[3] << " pushes step " << match[4]
            << ": " << match[5] << "\n";
    } else if (line.find(" shard ") == std::string::npos) {
      story << line << "\n";
    }
  }
  return story.str();
}

// Returns the lines of stories.txt between "== NAME" and the next blank line.
std::string Expected(const std::string& name) {
  std::ifstream file("tests/simulation/stories.txt");
  std::string story;
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    if (found && line.empty()) break;
    if (found) story += line + "\n";
    found = found || line == "== " + name;
  }
  return story;
}

void ExpectStory(const Job& job, const std::vector<ScriptedFault>& script) {
  const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::ostringstream trace;
  Simulation simulation({.seed = 8, .trace = &trace, .job = job, .script = script});
  EXPECT_EQ(simulation.Run(), "");
  const std::string story = StoryOf(trace.str());
  if (std::getenv("THINWIRE_PRINT_STORIES") != nullptr) {
    std::cout << "== " << name << "\n" << story << std::endl;
  } else {
    EXPECT_EQ(story, Expected(name));
  }
}

TEST(RecoveryStory, AServerWithALogIsKilled) {
  ExpectStory(StoryJob(Rule::Sync(2), Durability::kLog, 2), {{60, Kind::kKillServer, 1}});
}

TEST(RecoveryStory, Server0WithALogLosesItsPower) {
  ExpectStory(StoryJob(Rule::Sync(2), Durability::kLog, 2), {{60, Kind::kPowerLoss, 0}});
}

TEST(RecoveryStory, ATornTailOfTheLogIsCut) {
  ExpectStory(StoryJob(Rule::Async(2), Durability::kLog, 2), {{36, Kind::kPowerLoss, 1}});
}

TEST(RecoveryStory, ADamagedRecordIsRefused) {
  ExpectStory(StoryJob(Rule::Sync(2), Durability::kLog, 2), {{60, Kind::kDamageRecord, 1}});
}

TEST(RecoveryStory, ALostFolderEndsTheJob) {
  ExpectStory(StoryJob(Rule::Sync(2), Durability::kLog, 2), {{60, Kind::kLoseFolder, 1}});
}

TEST(RecoveryStory, ALostFolderOfServer0EndsTheJob) {
  ExpectStory(StoryJob(Rule::Async(2), Durability::kCheckpoint, 2), {{60, Kind::kLoseFolder, 0}});
}

TEST(RecoveryStory, AServerRollsBackInSync) {
  ExpectStory(StoryJob(Rule::Sync(2), Durability::kCheckpoint, 2), {{75, Kind::kPowerLoss, 1}});
}

TEST(RecoveryStory, Server0RollsBackInBackup) {
  ExpectStory(StoryJob(Rule::Backup(2, 1), Durability::kCheckpoint, 2),
              {{75, Kind::kPowerLoss, 0}});
}

TEST(RecoveryStory, AServerGoesOnAloneInAsync) {
  ExpectStory(StoryJob(Rule::Async(2), Durability::kCheckpoint, 2), {{60, Kind::kPowerLoss, 1}});
}

TEST(RecoveryStory, AWorkerRestartsWithItsResiduals) {
  ExpectStory(StoryJob(Rule::Sync(2), Durability::kNone, 1), {{70, Kind::kKillWorker, 0}});
}

}  // namespace
}  // namespace thinwire::simulation
