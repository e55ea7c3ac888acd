// Golden stories: one short run for each kind of recovery. stories.txt contains what the processes
// do, and each push with its verdict; the numbers at the beginning of lines are milliseconds.
//
// With THINWIRE_PRINT_STORIES=1, the test prints the stories of the runs, in the format of the file.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/durable/log_format.h"
#include "sim/cluster.h"

namespace thinwire::sim {
namespace {

constexpr WorkerId kWorker{0};
constexpr ServerId kLead{0};
constexpr ServerId kOther{1};

// Each server has one tensor, which is one shard.
VirtualTask StoryTask(uint32_t server_count) {
  VirtualTask task;
  for (uint32_t i = 0; i < server_count; ++i) {
    task.tensors.push_back({absl::StrCat("m", i), {4, 6}});
    task.initial.emplace_back(24);
  }
  task.last = Step{6};
  task.gradient = [](const VirtualStep& step, auto& gradient) {
    for (std::vector<float>& tensor : gradient) {
      for (size_t i = 0; i < tensor.size(); ++i) {
        tensor[i] = static_cast<float>((i * 7 + step.worker.value * 3 + step.step.value) % 9);
      }
    }
    return uint32_t{2};
  };
  task.time = [](const VirtualStep& step) {
    return absl::Milliseconds(200 + 40 * step.worker.value);
  };
  return task;
}

JobSpec StorySpec(const Rule& rule, Durability durability, uint32_t server_count = 2) {
  JobSpec spec;
  spec.rule = rule;
  spec.server_count = server_count;
  spec.shard_size = kLeastShardSize;
  spec.lease = absl::Seconds(2);
  spec.push.codec = {.id = CodecId::kTopK, .density = 0.125};
  spec.recovery.durability = durability;
  spec.recovery.checkpoint_interval =
      durability == Durability::kLog ? absl::Minutes(1) : absl::Milliseconds(100);
  return spec;
}

// Returns the lines of TRACE that tell the story. A push becomes "w1/1 pushes step 3: accept at s0".
std::string StoryOf(const std::string& trace) {
  const std::regex push(
      R"((\d+) (s\d) shard \d: push .* -> (w\d/\d+) step (\d+): ([a-z]+(?: again)?).*)");
  const std::regex other(R"(\d+ s\d shard .*)");
  std::istringstream lines(trace);
  std::string story;
  std::string verdict;  // of the last line of the story, if it is a push
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, push)) {
      const std::string told = absl::StrCat(match[1].str(), " ", match[3].str(), " pushes step ",
                                            match[4].str(), ": ", match[5].str(), " at ");
      if (told == verdict) {
        story.insert(story.size() - 1, absl::StrCat(", ", match[2].str()));
      } else {
        absl::StrAppend(&story, told, match[2].str(), "\n");
      }
      verdict = told;
    } else if (!std::regex_match(line, other)) {
      absl::StrAppend(&story, line, "\n");
      verdict.clear();
    }
  }
  return story;
}

// Returns the lines of stories.txt between "== NAME" and the next blank line.
std::string Expected(const std::string& name) {
  std::ifstream file("sim/stories.txt");
  std::string story;
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    if (found && line.empty()) break;
    if (found) story += line + "\n";
    found = found || line == "== " + name;
  }
  return story;
}

// Runs a job and FAULT in its middle until all workers have finished or failed, and compares its
// story. VIOLATION: what the ledger must find.
void ExpectStory(const JobSpec& spec, const std::function<void(Cluster&)>& fault,
                 const std::string& violation = "") {
  const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::ostringstream trace;
  {
    Cluster cluster(spec, StoryTask(spec.server_count),
                    {.seed = 2, .state_dir = folder, .trace = &trace});
    cluster.StartAll();
    cluster.RunFor(absl::Milliseconds(1100));
    fault(cluster);
    ASSERT_TRUE(cluster.RunUntilEnded(absl::Minutes(30))) << cluster.DescribeWorkers();
    EXPECT_EQ(cluster.ledger().Close(), violation);
  }
  std::filesystem::remove_all(folder);
  const std::string story = StoryOf(trace.str());
  if (std::getenv("THINWIRE_PRINT_STORIES") != nullptr) {
    std::cout << "== " << name << "\n" << story << std::endl;
  } else {
    EXPECT_EQ(story, Expected(name));
  }
}

// Returns a fault: SERVER ends, HARM changes its files, and a new process starts 500 ms later.
std::function<void(Cluster&)> Restart(
    ServerId server, bool power_loss,
    std::function<void(FaultyFiles&)> harm = [](FaultyFiles&) {}) {
  return [=](Cluster& cluster) {
    cluster.KillServer(server, power_loss);
    harm(cluster.files(server));
    cluster.RunFor(absl::Milliseconds(500));
    cluster.StartServer(server).IgnoreError();  // the story tells the error
  };
}

void LoseFolder(FaultyFiles& files) {
  ASSERT_TRUE(files.Rename("/state", "/lost").ok());
  ASSERT_TRUE(files.MakeFolder("/state").ok());
  ASSERT_TRUE(files.SyncFolder("/").ok());
}

// Changes a byte of the first record in the newest segment of the server's log.
void DamageRecord(FaultyFiles& files) {
  std::string segment;
  const std::vector<std::string> names = files.List("/state").value();
  for (const std::string& name : names) {
    if (ParseSegmentName(name).has_value()) segment = absl::StrCat("/state/", name);
  }
  std::vector<std::byte> bytes = files.Read(segment).value().ToVector();
  bytes.at(kSegmentHeaderBytes + kRecordHeaderBytes) ^= std::byte{1};
  files.SetBytes(segment, std::move(bytes));
}

TEST(RecoveryStory, AServerWithALogIsKilled) {
  ExpectStory(StorySpec(Rule::Sync(2), Durability::kLog), Restart(kOther, false));
}

TEST(RecoveryStory, Server0WithALogLosesItsPower) {
  ExpectStory(StorySpec(Rule::Sync(2), Durability::kLog), Restart(kLead, true));
}

TEST(RecoveryStory, ATornTailOfTheLogIsCut) {
  ExpectStory(StorySpec(Rule::Async(2), Durability::kLog), [](Cluster& cluster) {
    cluster.files(kOther).CrashAt(2);  // in the flush after the next record
    cluster.RunFor(absl::Milliseconds(500));
    ASSERT_TRUE(cluster.StartServer(kOther).ok());
  });
}

TEST(RecoveryStory, ADamagedRecordIsRefused) {
  ExpectStory(StorySpec(Rule::Sync(2), Durability::kLog), Restart(kOther, false, DamageRecord));
}

TEST(RecoveryStory, ALostFolderEndsTheJob) {
  ExpectStory(StorySpec(Rule::Sync(2), Durability::kLog), Restart(kOther, true, LoseFolder),
              "shard 1: record 18 had effects and is lost (the log ends at record 0)\n");
}

TEST(RecoveryStory, ALostFolderOfServer0EndsTheJob) {
  ExpectStory(StorySpec(Rule::Async(2), Durability::kCheckpoint), Restart(kLead, true, LoseFolder));
}

TEST(RecoveryStory, AServerRollsBackInSync) {
  ExpectStory(StorySpec(Rule::Sync(2), Durability::kCheckpoint), Restart(kOther, true));
}

TEST(RecoveryStory, Server0RollsBackInBackup) {
  ExpectStory(StorySpec(Rule::Backup(2, 1), Durability::kCheckpoint), Restart(kLead, true));
}

TEST(RecoveryStory, AServerGoesOnAloneInAsync) {
  ExpectStory(StorySpec(Rule::Async(2), Durability::kCheckpoint), Restart(kOther, true));
}

TEST(RecoveryStory, AWorkerRestartsWithItsResiduals) {
  ExpectStory(StorySpec(Rule::Sync(2), Durability::kNone, 1), [](Cluster& cluster) {
    cluster.KillWorker(kWorker);
    cluster.StartWorker(kWorker);
  });
}

TEST(RecoveryStory, AnotherProcessTakesTheNumberOfASuspendedWorker) {
  ExpectStory(StorySpec(Rule::Async(2), Durability::kNone, 1), [](Cluster& cluster) {
    cluster.SuspendWorker(kWorker, absl::Seconds(4));
    cluster.StartWorker(kWorker);
  });
}

TEST(RecoveryStory, ADrainedServerComesBack) {
  ExpectStory(StorySpec(Rule::Sync(2), Durability::kLog), [](Cluster& cluster) {
    cluster.DrainServer(kOther);
    cluster.RunFor(absl::Milliseconds(500));
    ASSERT_TRUE(cluster.StartServer(kOther).ok());
  });
}

}  // namespace
}  // namespace thinwire::sim
