// Tests real servers and workers whose job files differ. The server refuses the join with a message
// that names the field and both of its settings, and no process hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Returns the text of a job file for two servers and two workers with the given fields.
std::string JobFile(const std::string& consistency, const std::string& optimization,
                    const std::string& compression, const std::string& task) {
  return absl::StrCat(
      "servers: 2 silence_seconds: 4 consistency { start_timeout_seconds: 3 ", consistency,
      " } optimization { ", optimization, " } compression { ", compression,
      " } task { model: softmax train_examples: 500 test_examples: 100 ", task, " }");
}

class JobDifferenceTest : public testing::Test {
 protected:
  // Starts server 0 with the job file JOB0 and server 1 with JOB1.
  void StartServers(const std::string& job0, const std::string& job1) {
    addresses_ = {"127.0.0.1:0", daemons_.StartServer("server1", job1, {"--server", "1"})};
    addresses_[0] = daemons_.StartServer(
        "server0", job0, {"--server", "0", "--addresses", absl::StrJoin(addresses_, ",")});
    ASSERT_NE(addresses_[0], "");
    ASSERT_NE(addresses_[1], "");
  }

  void StartWorker(uint32_t worker, const std::string& job,
                   const std::vector<std::string>& more = {}) {
    std::vector<std::string> flags = {"--worker", absl::StrCat(worker), "--addresses",
                                      absl::StrJoin(addresses_, ",")};
    flags.insert(flags.end(), more.begin(), more.end());
    daemons_.StartWorker(absl::StrCat("worker", worker), job, flags);
  }

  // Expects that the servers refuse WORKER, and returns the worker's output.
  std::string Refused(uint32_t worker) {
    const ProcessResult end = daemons_.WaitForEnd(absl::StrCat("worker", worker));
    EXPECT_EQ(end.exit, ExitStatus{.code = 78}) << end.log;
    return end.output;
  }

  // Starts worker 0 with the job file JOB and then worker 1 with OTHER, which the servers refuse.
  // Returns the output of worker 1. After the start timeout, worker 0 trains alone.
  std::string SecondRefused(const std::string& job, const std::string& other) {
    StartServers(job, job);
    StartWorker(0, job);
    // Waits until worker 0 has joined both servers, so that worker 1 joins second.
    EXPECT_TRUE(daemons_.WaitForLog("server0", "worker 0 joined"));
    EXPECT_TRUE(daemons_.WaitForLog("server1", "worker 0 joined"));
    StartWorker(1, other);
    const std::string output = Refused(1);
    const ProcessResult first = daemons_.WaitForEnd("worker0");
    EXPECT_EQ(first.exit, ExitStatus()) << first.log;
    return output;
  }

  Daemons daemons_;
  std::vector<std::string> addresses_;
};

TEST_F(JobDifferenceTest, AServerWithAnotherOptimizerRefusesTheWorkersOfTheJob) {
  const std::string sgd = JobFile("workers: 1", "", "", "");
  const std::string adam = JobFile("workers: 1", "optimizer: adam", "", "");
  StartServers(sgd, adam);
  StartWorker(0, sgd);
  EXPECT_THAT(Refused(0), HasSubstr("worker 0: optimization.optimizer differs from the job's "
                                    "(expected adam, got sgd)"));
}

TEST_F(JobDifferenceTest, AWorkerThatBelievesInAnotherNumberOfWorkersIsRefused) {
  const std::string two = JobFile("workers: 2", "", "", "");
  StartServers(two, two);
  StartWorker(4, JobFile("workers: 5", "", "", ""));
  EXPECT_THAT(Refused(4), HasSubstr("worker 4: consistency.workers differs from the job's "
                                    "(expected 2, got 5)"));
}

TEST_F(JobDifferenceTest, AWorkerWithAnotherPushCodecIsRefused) {
  EXPECT_THAT(SecondRefused(JobFile("workers: 2", "", "push: bf16", ""),
                            JobFile("workers: 2", "", "push: fp8_e5m2", "")),
              HasSubstr("worker 1: compression.push differs from the job's (expected bf16, got "
                        "fp8_e5m2)"));
}

TEST_F(JobDifferenceTest, AWorkerWithAnotherSeedAndBatchSizeIsRefused) {
  EXPECT_THAT(SecondRefused(JobFile("workers: 2", "", "", "seed: 1 batch_size: 50"),
                            JobFile("workers: 2", "", "", "seed: 2 batch_size: 25")),
              HasSubstr("worker 1: task.batch_size differs from the job's (expected 50, got 25); "
                        "task.seed differs from the job's (expected 1, got 2)"));
}

TEST_F(JobDifferenceTest, SettingsOfAProcessMayDiffer) {
  const std::string job = JobFile("workers: 2", "", "", "");
  StartServers(job, job);
  StartWorker(0, job, {"--threads", "1", "--delay", "1ms"});
  StartWorker(1, absl::StrCat(job, " straggler: '1:2ms' report: 'other.json'"),
              {"--threads", "2", "--silence_seconds", "5"});
  for (const char* worker : {"worker0", "worker1"}) {
    const ProcessResult end = daemons_.WaitForEnd(worker);
    EXPECT_EQ(end.exit, ExitStatus()) << end.log;
  }
}

}  // namespace
}  // namespace thinwire
