// Golden stories: one short run for each kind of recovery, as text. A line is what a process does, or
// a push with its verdict; numbers at the beginning of lines are ticks.
//
// THINWIRE_PRINT_STORIES=1 prints the stories as they are.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

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
  job.last = Step{6};
  Complete(job);
  return job;
}

// Returns the lines of TRACE that tell the story. A push becomes "s0: w1/1 pushes step 3: accept".
std::string StoryOf(const std::string& trace) {
  static const std::regex kPush(
      R"((\d+) (s\d) shard \d: push .* -> (w\d/\d+) step (\d+): ([a-z]+(?: again)?).*)");
  std::istringstream lines(trace);
  std::ostringstream story;
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, kPush)) {
      story << match[1] << " " << match[2] << ": " << match[3] << " pushes step " << match[4]
            << ": " << match[5] << "\n";
    } else if (line.find(" shard ") == std::string::npos) {
      story << line << "\n";
    }
  }
  return story.str();
}

void ExpectStory(const Job& job, const std::vector<ScriptedFault>& script,
                 const std::string& expected) {
  std::ostringstream trace;
  Simulation simulation({.seed = 8, .trace = &trace, .job = job, .script = script});
  EXPECT_EQ(simulation.Run(), "");
  const std::string story = StoryOf(trace.str());
  if (std::getenv("THINWIRE_PRINT_STORIES") != nullptr) {
    std::cout << story << std::endl;
  } else {
    EXPECT_EQ("\n" + story, expected);
  }
}

TEST(RecoveryStory, AServerWithALogIsKilled) {
  ExpectStory(StoryJob(Rule::Sync(2), Durability::kLog, 2), {{60, Kind::kKillServer, 1}}, R"()");
}

TEST(RecoveryStory, Server0WithALogLosesItsPower) {
  ExpectStory(StoryJob(Rule::Sync(2), Durability::kLog, 2), {{60, Kind::kPowerLoss, 0}}, R"()");
}

TEST(RecoveryStory, AServerRollsBackInSync) {
  ExpectStory(StoryJob(Rule::Sync(2), Durability::kCheckpoint, 2), {{75, Kind::kPowerLoss, 1}},
              R"()");
}

TEST(RecoveryStory, Server0RollsBackInBackup) {
  ExpectStory(StoryJob(Rule::Backup(2, 1), Durability::kCheckpoint, 2), {{75, Kind::kPowerLoss, 0}},
              R"()");
}

TEST(RecoveryStory, AServerGoesOnAloneInAsync) {
  ExpectStory(StoryJob(Rule::Async(2), Durability::kCheckpoint, 2), {{60, Kind::kPowerLoss, 1}},
              R"()");
}

TEST(RecoveryStory, AWorkerRestartsWithItsResiduals) {
  ExpectStory(StoryJob(Rule::Async(1), Durability::kNone, 1), {{60, Kind::kKillWorker, 0}}, R"()");
}

}  // namespace
}  // namespace thinwire::simulation
