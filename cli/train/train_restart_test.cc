#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/rpc/fake_control_server.h"
#include "cli/train/testing/train_run_fixture.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using State = WorkerRow::State;

// In these tests, the servers keep state and three restarts are allowed. Every process appends a
// line with its arguments to the file NAME.starts, such as server1.starts, when it starts.
class RestartTest : public TrainRunTest {
 protected:
  void SetUp() override {
    TrainRunTest::SetUp();
    setting_.state_dir = "/state";
    setting_.restarts = 3;
    setting_.restart_delay = absl::ZeroDuration();
  }

  // Returns a script that counts the starts of each process in the variable `starts`, and then runs
  // TEXT. The number of the process is $4.
  std::string Counting(const std::string& name, const std::string& text) const {
    const std::string file = absl::StrCat(dir_->PathOf(name), "$4.starts");
    return absl::StrCat("echo \"$*\" >> ", file, "; starts=$(wc -l < ", file, "); ", text);
  }
  ExitCode RunCounting(const std::string& server, const std::string& worker) {
    return Run(Counting("server", server), Counting("worker", worker));
  }

  // Returns a shell command that blocks until the process has started COUNT times.
  std::string AwaitStarts(const std::string& process, int count) const {
    return absl::StrCat("until [ \"$(wc -l 2> /dev/null < ", dir_->PathOf(process),
                        ".starts)\" = ", count, " ]; do sleep 0.02; done; ");
  }
  // Returns the arguments of each start of a process.
  std::vector<std::string> StartsOf(const std::string& process) const {
    std::vector<std::string> lines;
    std::ifstream in(dir_->PathOf(process + ".starts"));
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  const std::vector<thinwire::Restart>& restarts() const {
    return run_->result().record.restarts();
  }

  // A server that dies once a worker runs, except in the last of COUNT processes.
  std::string DyingServer(uint32_t server, int count) const {
    return absl::StrCat("echo listening 127.0.0.1:1; if [ $4 = ", server, " ] && [ $starts -lt ",
                        count, " ]; then ", AwaitStarts("worker0", 1),
                        "kill -9 $$; fi; exec sleep 1000");
  }
};

TEST_F(RestartTest, AKilledServerIsStartedAgainAtItsAddress) {
  EXPECT_EQ(RunCounting(DyingServer(1, 2), AwaitStarts("server1", 2) + kDone), ExitCode::kOk);
  EXPECT_THAT(messages_.str(), HasSubstr("warning: server 1 was killed by signal 9; started again "
                                         "(1 of 3 restarts)\n"));
  ASSERT_THAT(StartsOf("server1"), SizeIs(2));
  EXPECT_THAT(StartsOf("server1")[0], HasSubstr("--listen 127.0.0.1:0 --state_dir /state"));
  EXPECT_THAT(StartsOf("server1")[1], HasSubstr("--listen 127.0.0.1:1 --state_dir /state"));
  EXPECT_EQ(run_->result().record.CountOf(State::kDone), 2);
  EXPECT_THAT(run_->result().record.lost_servers(), SizeIs(0));
}

TEST_F(RestartTest, WorkersThatAnOperatorAddsAreStarted) {
  setting_.config.set_servers(1);
  FakeControlServer lead("tensor", "aaaa");
  lead.target_workers = 4;
  const std::string server = absl::StrCat("echo listening ", lead.address(), "; exec sleep 1000");
  const std::string worker = AwaitStarts("worker2", 1) + AwaitStarts("worker3", 1);
  EXPECT_EQ(RunCounting(server, worker + kDone), ExitCode::kOk) << messages_.str();
  EXPECT_THAT(messages_.str(), HasSubstr("workers 2 -> 4\n"));
  EXPECT_EQ(run_->result().record.CountOf(State::kDone), 4);
  EXPECT_THAT(StartsOf("worker3"), SizeIs(1));
  EXPECT_THAT(restarts(), SizeIs(0));
}

// A run with one server, whose lead wishes for more workers than --grow_to allows.
class GrowTest : public RestartTest {
 protected:
  void SetUp() override {
    RestartTest::SetUp();
    setting_.config.set_servers(1);
    setting_.grow_to = 4;
    lead_.target_workers = 2;
    lead_.wished_workers = 8;
  }
  ExitCode RunWith(const std::string& worker) {
    return RunCounting(absl::StrCat("echo listening ", lead_.address(), "; exec sleep 1000"),
                       worker);
  }

  FakeControlServer lead_{"tensor", "aaaa"};
};

TEST_F(GrowTest, TheWishOfTheLeadStartsWorkersUpToTheLimit) {
  EXPECT_EQ(RunWith(AwaitStarts("worker2", 1) + AwaitStarts("worker3", 1) + kDone), ExitCode::kOk)
      << messages_.str();
  EXPECT_THAT(messages_.str(), HasSubstr("workers 2 -> 4\n"));
  EXPECT_EQ(lead_.target_workers, 4u);
  EXPECT_EQ(run_->result().record.CountOf(State::kDone), 4);
}

TEST_F(GrowTest, AWorkerThatCannotStartDoesNotEndTheRun) {
  setting_.restarts = 0;
  const std::string worker = AwaitStarts("worker2", 1) + AwaitStarts("worker3", 1) +
                             "[ \"$n\" = 3 ] && echo 'no memory' >&2 && exit 69; ";
  EXPECT_EQ(RunWith(worker + kDone), ExitCode::kOk) << messages_.str();
  EXPECT_EQ(run_->result().record.CountOf(State::kDone), 3);
  EXPECT_EQ(StateOf(3), State::kLost);
  EXPECT_THAT(run_->result().problems,
              testing::ElementsAre("worker 3 lost: exit code 69: no memory"));
}

TEST_F(GrowTest, AnOperatorMayReduceTheWorkersAgain) {
  const std::string reduced = dir_->PathOf("reduced");
  std::thread op([&] {
    const auto await = [](const std::function<bool()>& done) {
      while (!done()) absl::SleepFor(absl::Milliseconds(5));
    };
    await([this] { return lead_.target_workers == 4; });
    lead_.target_workers = 3;
    const uint64_t before = lead_.status_count;
    await([&] { return lead_.status_count >= before + 4; });
    std::ofstream(reduced) << "";
  });
  EXPECT_EQ(RunWith(absl::StrCat("until [ -e ", reduced, " ]; do sleep 0.02; done; ", kDone)),
            ExitCode::kOk);
  op.join();
  EXPECT_EQ(lead_.scale_count, 1u) << "the run asks once for each wish";
  EXPECT_EQ(lead_.target_workers, 3u);
}

TEST_F(GrowTest, ARefusedNumberIsAWarningAndIsNotRepeated) {
  setting_.grow_to = 100;
  lead_.wished_workers = 65;
  const std::string refused = dir_->PathOf("refused");
  std::thread op([&] {
    while (lead_.scale_count == 0) absl::SleepFor(absl::Milliseconds(5));
    const uint64_t before = lead_.status_count;
    while (lead_.status_count < before + 4) absl::SleepFor(absl::Milliseconds(5));
    std::ofstream(refused) << "";
  });
  EXPECT_EQ(RunWith(absl::StrCat("until [ -e ", refused, " ]; do sleep 0.02; done; ", kDone)),
            ExitCode::kOk);
  op.join();
  EXPECT_EQ(lead_.scale_count, 1u);
  EXPECT_THAT(messages_.str(), HasSubstr("warning: the number of workers stays: server 0 ("));
  EXPECT_THAT(messages_.str(), HasSubstr("workers: out of range"));
  EXPECT_EQ(run_->result().record.CountOf(State::kDone), 2);
}

TEST_F(RestartTest, AKilledLeadIsStartedAgainWithTheAddressesOfAllServers) {
  EXPECT_EQ(RunCounting(DyingServer(0, 2), AwaitStarts("server0", 2) + kDone), ExitCode::kOk);
  ASSERT_THAT(StartsOf("server0"), SizeIs(2));
  EXPECT_THAT(StartsOf("server0")[1],
              HasSubstr("--listen 127.0.0.1:1 --addresses 127.0.0.1:1,127.0.0.1:1"));
}

TEST_F(RestartTest, AServerWithoutStateIsNotStartedAgain) {
  setting_.state_dir = "";
  const std::string server =
      "echo listening 127.0.0.1:1; [ $4 = 1 ] && kill -9 $$; exec sleep 1000";
  EXPECT_EQ(RunCounting(server, kDone), ExitCode::kUnavailable);
  EXPECT_THAT(StartsOf("server1"), SizeIs(1));
  EXPECT_THAT(run_->result().problems,
              testing::ElementsAre("server 1 lost: killed by signal 9 (Killed)"));
}

TEST_F(RestartTest, AServerThatNeverListenedIsNotStartedAgain) {
  EXPECT_EQ(RunCounting("exit 70", kDone), ExitCode::kUnavailable);
  EXPECT_THAT(restarts(), SizeIs(0));
}

TEST_F(RestartTest, AServerThatCannotReadItsStateIsNotStartedAgain) {
  const std::string server =
      absl::StrCat("[ $starts = 2 ] && echo 'damaged log' >&2 && exit 78; ", DyingServer(1, 2));
  EXPECT_EQ(RunCounting(server, "exec sleep 1000"), ExitCode::kConfig);
  EXPECT_THAT(StartsOf("server1"), SizeIs(2));
  EXPECT_THAT(run_->result().problems,
              testing::ElementsAre("server 1 lost: exit code 78: damaged log"));
}

TEST_F(RestartTest, TheRunEndsWhenTheRestartsAreUsedUp) {
  setting_.restarts = 2;
  setting_.config.set_silence_seconds(1000);
  EXPECT_EQ(RunCounting(DyingServer(1, 99), "exec sleep 1000"), ExitCode::kUnavailable);
  EXPECT_THAT(restarts(), SizeIs(2));
  EXPECT_THAT(StartsOf("server1"), SizeIs(3));
  EXPECT_THAT(messages_.str(), HasSubstr("(2 of 2 restarts)"));
  EXPECT_THAT(run_->result().problems,
              testing::ElementsAre("server 1 lost: killed by signal 9 (Killed)"));
}

TEST_F(RestartTest, TheServersAreAskedAfterARestartedServerListens) {
  setting_.config.set_servers(1);
  setting_.config.mutable_consistency()->set_workers(1);
  FakeControlServer control("tensor", "aaaa");
  // The second process listens after the worker has ended.
  const std::string server = absl::StrCat(
      "if [ $starts = 1 ]; then echo listening 127.0.0.1:1; ", AwaitStarts("worker0", 1),
      "kill -9 $$; fi; until [ -e ", dir_->PathOf("pid"),
      " ]; do sleep 0.02; done; while kill -0 $(cat ", dir_->PathOf("pid"),
      "); do sleep 0.02; done; echo listening ", control.address(), "; exec sleep 1000");
  const std::string worker =
      absl::StrCat(AwaitStarts("server0", 2), kDone, "echo $$ > ", dir_->PathOf("pid.tmp"), "; mv ",
                   dir_->PathOf("pid.tmp"), " ", dir_->PathOf("pid"));
  EXPECT_EQ(RunCounting(server, worker), ExitCode::kOk) << messages_.str();
  EXPECT_THAT(run_->result().problems, SizeIs(0));
  ASSERT_TRUE(run_->result().totals.has_value());
  EXPECT_EQ(run_->result().totals->counters.accepted_pushes(), 7);
}

TEST_F(RestartTest, AKilledWorkerIsStartedAgainWithItsNumber) {
  setting_.state_dir = "";
  const std::string worker = "[ $n$starts = 11 ] && kill -9 $$; " + std::string(kDone);
  EXPECT_EQ(RunCounting(kServer, worker), ExitCode::kOk);
  EXPECT_EQ(StateOf(0), State::kDone);
  EXPECT_EQ(StateOf(1), State::kDone);
  EXPECT_THAT(StartsOf("worker0"), SizeIs(1));
  ASSERT_THAT(StartsOf("worker1"), SizeIs(2));
  EXPECT_EQ(StartsOf("worker1")[0], StartsOf("worker1")[1]);
  EXPECT_THAT(messages_.str(), HasSubstr("warning: worker 1 was killed by signal 9; started again "
                                         "(1 of 3 restarts)\n"));
}

TEST_F(RestartTest, AWorkerThatReportedAnErrorIsStartedAgainAndTheErrorIsShown) {
  setting_.config.mutable_consistency()->set_workers(1);
  const std::string worker =
      "if [ $starts = 1 ]; then echo '{\"worker\":0,\"error\":{\"message\":\"server 1 is "
      "silent\"}}'; exit 69; fi; " +
      std::string(kDone);
  EXPECT_EQ(RunCounting(kServer, worker), ExitCode::kOk);
  EXPECT_THAT(messages_.str(), HasSubstr("warning: worker 0 ended with exit code 69: server 1 is "
                                         "silent; started again (1 of 3 restarts)\n"));
}

TEST_F(RestartTest, TheRestartsAreCountedForAllProcessesTogether) {
  EXPECT_EQ(RunCounting(kServer, "exit 70"), ExitCode::kUnavailable);
  EXPECT_THAT(restarts(), SizeIs(3));
  EXPECT_EQ(StartsOf("worker0").size() + StartsOf("worker1").size(), 5);
  EXPECT_EQ(run_->result().record.CountOf(State::kLost), 2);
}

TEST_F(RestartTest, AWorkerThatEndedInOrderIsNotStartedAgain) {
  setting_.config.mutable_consistency()->set_workers(1);
  int checked = 0;
  for (const int code : {0, 64, 65, 75, 78}) {
    std::filesystem::remove(dir_->PathOf("worker0.starts"));
    RunCounting(kServer, absl::StrCat("exit ", code));
    EXPECT_THAT(StartsOf("worker0"), SizeIs(1)) << code;
    EXPECT_THAT(restarts(), SizeIs(0)) << code;
    ++checked;
  }
  EXPECT_EQ(checked, 5);
}

TEST_F(RestartTest, AWorkerThatDiesAfterItIsDoneIsNotStartedAgain) {
  setting_.config.mutable_consistency()->set_workers(1);
  RunCounting(kServer, absl::StrCat(kDone, "kill -9 $$"));
  EXPECT_THAT(StartsOf("worker0"), SizeIs(1));
  EXPECT_EQ(StateOf(0), State::kLost);
}

TEST_F(RestartTest, AfterASignalNothingIsStartedAgain) {
  // Worker 1 interrupts the run, and dies by a signal when the run stops it.
  const std::string worker =
      absl::StrCat("trap 'exit 75' TERM; [ \"$n\" = 1 ] && trap 'kill -9 $$' TERM && kill -INT ",
                   getpid(), "; while :; do sleep 0.05; done");
  EXPECT_EQ(RunCounting(kServer, worker), ExitCode::kInterrupted);
  EXPECT_THAT(restarts(), SizeIs(0));
  EXPECT_EQ(run_->result().record.CountOf(State::kStopped), 2);
}

TEST_F(RestartTest, ASignalEndsTheWaitForADelayedRestart) {
  setting_.restart_delay = absl::Hours(1);
  // Worker 1 dies twice. Its second restart is delayed, and worker 0 interrupts the run.
  const std::string worker =
      absl::StrCat("trap 'exit 75' TERM; [ \"$n\" = 1 ] && kill -9 $$; ", AwaitStarts("worker1", 2),
                   "kill -INT ", getpid(), "; while :; do sleep 0.05; done");
  EXPECT_EQ(RunCounting(kServer, worker), ExitCode::kInterrupted);
  EXPECT_THAT(restarts(), SizeIs(1));
  EXPECT_EQ(run_->result().record.CountOf(State::kStopped), 2);
}

TEST_F(RestartTest, AfterDivergenceNothingIsStartedAgain) {
  const std::string worker =
      "[ \"$n\" = 1 ] && trap 'kill -9 $$' TERM && while :; do sleep 0.05; done; trap '' TERM; " +
      AwaitStarts("worker1", 1) +
      "echo '{\"worker\":0,\"done\":{\"left_early\":true,"
      "\"diverged\":\"the loss of step 7 is not finite\"}}'; exit 65";
  EXPECT_EQ(RunCounting(kServer, worker), ExitCode::kDiverged);
  EXPECT_THAT(restarts(), SizeIs(0));
  EXPECT_EQ(StateOf(1), State::kStopped);
}

}  // namespace
}  // namespace thinwire
