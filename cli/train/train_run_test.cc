#include "cli/train/train_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/rpc/fake_control_server.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using State = WorkerRow::State;

// In these tests, servers and workers are shell scripts: real processes, but without the gRPC
// service that TrainRun calls.
class TrainRunTest : public testing::Test {
 protected:
  static constexpr char kServer[] = "echo listening 127.0.0.1:1; exec sleep 1000";
  // Reads the worker's number. The arguments of a worker are --config FILE --worker NUMBER
  // --addresses LIST, so the number is argument $4.
  static constexpr char kNumber[] = "n=$4; ";
  static constexpr char kDone[] =
      "echo "
      "'{\"worker\":'${n:-0}',\"done\":{\"steps\":\"5\",\"seconds\":1,\"final_train_loss\":0.5}}';"
      " ";

  void SetUp() override {
    signals_ = std::move(*Signals::Block());
    dir_ = std::move(*TempDir::Make(testing::TempDir()));
    setting_.config.set_servers(2);
    setting_.config.mutable_consistency()->set_workers(2);
  }

  std::string Script(const std::string& name, const std::string& text) {
    EXPECT_TRUE(dir_->WriteFile(name, "#!/bin/sh\n" + text + "\n").ok());
    std::filesystem::permissions(dir_->PathOf(name), std::filesystem::perms::owner_all);
    return dir_->PathOf(name);
  }

  ExitCode Run(const std::string& server, const std::string& worker) {
    setting_.programs = {Script("server", server), Script("worker", kNumber + worker)};
    Console console(messages_, {});
    run_ = std::make_unique<TrainRun>(setting_, *signals_, *dir_, console, clock_);
    return run_->Run();
  }

  State StateOf(uint32_t worker) const { return run_->result().record.workers()[worker].state; }

  TrainSetting setting_;
  std::unique_ptr<Signals> signals_;
  std::unique_ptr<TempDir> dir_;
  SteadyClock clock_;
  std::ostringstream messages_;
  std::unique_ptr<TrainRun> run_;
};

TEST_F(TrainRunTest, TheRunSucceedsWhenAllWorkersAreDone) {
  EXPECT_EQ(Run(kServer, kDone), ExitCode::kOk);
  EXPECT_EQ(run_->result().record.CountOf(State::kDone), 2);
  EXPECT_EQ(run_->result().record.steps(), 5);
}

TEST_F(TrainRunTest, AModelThatNoWorkerHasWrittenIsAFailure) {
  setting_.output.path = "m.safetensors";
  EXPECT_EQ(Run(kServer, kDone), ExitCode::kUnavailable);
  EXPECT_EQ(run_->result().problems[0],
            "--output: m.safetensors: not written, because the evaluating worker was lost");
}

TEST_F(TrainRunTest, AWorkerThatGaveTheModelUpIsNotStartedAgain) {
  setting_.output.path = "m.safetensors";
  EXPECT_EQ(Run(kServer, absl::StrCat(kDone, "[ \"$n\" = 1 ] || exit 74")), ExitCode::kIo);
  EXPECT_THAT(run_->result().record.restarts(), SizeIs(0));
  EXPECT_THAT(run_->result().problems,
              testing::Contains(HasSubstr(
                  "--output: m.safetensors: not written, because the worker was stopped")));
}

TEST_F(TrainRunTest, AWrittenModelIsOfTheRun) {
  setting_.output = {.path = "m.safetensors", .keep = "best"};
  const std::string worker =
      "[ \"$7 $8 $9\" = '--output m.safetensors --keep' ] || exit 9; "
      "[ \"$n\" = 1 ] && echo '{\"worker\":1,\"done\":{\"steps\":\"5\",\"evaluator\":true,"
      "\"output\":\"m.safetensors\",\"kept_epoch\":2}}' && exit; ";
  EXPECT_EQ(Run(kServer, worker + kDone), ExitCode::kOk) << messages_.str();
  ASSERT_NE(run_->result().record.writer(), nullptr);
  EXPECT_EQ(run_->result().record.writer()->worker, WorkerId{1});
  EXPECT_EQ(run_->result().record.writer()->kept_epoch, 2);
}

TEST_F(TrainRunTest, AWorkerThatDivergedStopsTheOthers) {
  // Worker 1 trains until it is stopped. Worker 0 ends by itself.
  const std::string worker =
      "[ \"$n\" = 1 ] && trap 'exit 75' TERM && while :; do sleep 0.05; done; trap '' TERM; "
      "echo '{\"worker\":0,\"done\":{\"left_early\":true,"
      "\"diverged\":\"the loss of step 7 is not finite\"}}'; exit 65";
  EXPECT_EQ(Run(kServer, worker), ExitCode::kDiverged);
  EXPECT_EQ(StateOf(0), State::kDiverged);
  EXPECT_EQ(StateOf(1), State::kStopped);
  EXPECT_EQ(run_->result().problems[0], "diverged: worker 0: the loss of step 7 is not finite");
}

TEST_F(TrainRunTest, AWorkerThatDivergedAtTheEndDoesNotStopTheOthers) {
  const std::string worker =
      "echo '{\"worker\":'$n',\"done\":{\"diverged\":\"the loss of step 7 is not finite\"}}'; "
      "[ \"$n\" = 0 ] && exit 65; sleep 0.2; " +
      std::string(kDone);
  EXPECT_EQ(Run(kServer, worker), ExitCode::kDiverged);
  EXPECT_EQ(StateOf(0), State::kDiverged);
  EXPECT_EQ(StateOf(1), State::kDone);
}

TEST_F(TrainRunTest, TheWorkersReceiveTheServersAddresses) {
  const std::string check = "[ \"$5 $6\" = '--addresses 127.0.0.1:1,127.0.0.1:1' ] || exit 9; ";
  EXPECT_EQ(Run(kServer, check + kDone), ExitCode::kOk) << messages_.str();
}

TEST_F(TrainRunTest, EveryProcessReceivesTheJobFile) {
  const std::string check = "grep -q 'servers: 2' \"$2\" || exit 9; ";
  EXPECT_EQ(Run(check + kServer, check + kDone), ExitCode::kOk) << messages_.str();
}

TEST_F(TrainRunTest, ALostWorkerIsReportedAndTheOthersContinue) {
  EXPECT_EQ(Run(kServer, absl::StrCat("[ \"$n\" = 1 ] && kill -9 $$; ", kDone)), ExitCode::kOk);
  EXPECT_EQ(StateOf(0), State::kDone);
  EXPECT_EQ(StateOf(1), State::kLost);
  EXPECT_THAT(messages_.str(), HasSubstr("worker 1 lost: killed by signal 9 (Killed)"));
}

// Returns how often TEXT contains PART.
int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(TrainRunTest, AnErrorThatAllWorkersReportAndLogIsShownOnce) {
  const std::string worker =
      "echo '{\"worker\":'${n:-0}',\"error\":{\"message\":\"no such folder\"}}'; "
      "echo 'E1122 10:00:00.0 7 main.cc:9] no such folder' >&2; exit 78";
  EXPECT_EQ(Run(kServer, worker), ExitCode::kConfig);
  EXPECT_EQ(Count(messages_.str(), "no such folder"), 1) << messages_.str();
  EXPECT_THAT(messages_.str(), HasSubstr(" lost: exit code 78: no such folder\n"));
  EXPECT_THAT(run_->result().problems, SizeIs(1));
  EXPECT_EQ(run_->result().record.CountOf(State::kLost), 2);
  EXPECT_EQ(StateOf(1), State::kLost);
}

TEST_F(TrainRunTest, AnErrorIsShownAsOneSentenceAndRecordedWithItsDetails) {
  setting_.config.mutable_consistency()->set_workers(1);
  const std::string worker =
      "printf '%s\\n' '{\"worker\":0,\"error\":{\"message\":\"m.pt: no; last error: "
      "UNKNOWN\\nTraceback\"}}'; exit 78";
  EXPECT_EQ(Run(kServer, worker), ExitCode::kConfig);
  EXPECT_THAT(messages_.str(), HasSubstr("error: worker 0 lost: exit code 78: m.pt: no\n"));
  EXPECT_THAT(run_->result().problems,
              testing::ElementsAre("worker 0 lost: exit code 78: m.pt: no"));
  EXPECT_THAT(run_->result().record.workers()[0].reason, HasSubstr("Traceback"));
}

TEST_F(TrainRunTest, TheLastLogLineOfAWorkerThatReportedNoErrorIsShown) {
  setting_.config.mutable_consistency()->set_workers(1);
  EXPECT_EQ(Run(kServer, "echo reading >&2; echo 'no such folder' >&2; exit 69"),
            ExitCode::kUnavailable);
  EXPECT_THAT(messages_.str(), HasSubstr("error: worker 0 lost: exit code 69: no such folder\n"));
}

TEST_F(TrainRunTest, AnErrorInTheLogIsShownAtOnceAndNotAgain) {
  setting_.config.mutable_consistency()->set_workers(1);
  EXPECT_EQ(Run(kServer, "echo 'error: no such folder' >&2; exit 69"), ExitCode::kUnavailable);
  EXPECT_THAT(messages_.str(), HasSubstr("worker 0: error: no such folder\n"));
  EXPECT_THAT(messages_.str(), HasSubstr("error: worker 0 lost: exit code 69\n"));
}

TEST_F(TrainRunTest, TheConnectionsToTheServersAreClosedBeforeTheServersStop) {
  setting_.config.set_servers(1);
  FakeControlServer control("tensor", "aaaa");
  // At SIGTERM, the script counts the established connections to the fake server.
  const std::string count = absl::StrFormat(
      "trap \"cat /proc/net/tcp /proc/net/tcp6 | grep -c ':%04X 01 ' > %s; exit 0\" TERM; ",
      control.port(), dir_->PathOf("count"));
  EXPECT_EQ(Run(absl::StrCat(count, "echo listening ", control.address(),
                             "; while :; do sleep 0.05; done"),
                kDone),
            ExitCode::kOk);
  EXPECT_TRUE(run_->result().totals.has_value());
  std::string connections;
  std::ifstream(dir_->PathOf("count")) >> connections;
  EXPECT_EQ(connections, "0");
}

TEST_F(TrainRunTest, ALostServerEndsTheRunOnceTheWorkersHaveReportedIt) {
  const std::string server =
      "echo listening 127.0.0.1:1; [ \"$3 $4\" = '--server 0' ] || exec sleep 1000; exec sleep 0.2";
  // The workers report the loss after the server has ended.
  const std::string worker =
      "sleep 1; echo '{\"worker\":'${n:-0}',\"error\":{\"message\":\"server 0 is silent\"}}'; "
      "exit 69";
  EXPECT_EQ(Run(server, worker), ExitCode::kUnavailable);
  EXPECT_EQ(run_->result().record.CountOf(State::kLost), 2);
  // The losses of the workers are recorded, but only the server's loss is shown as a problem.
  EXPECT_THAT(run_->result().record.workers()[0].reason,
              HasSubstr("exit code 69: server 0 is silent"));
  EXPECT_THAT(run_->result().problems, testing::ElementsAre("server 0 lost: exit code 0"));
}

TEST_F(TrainRunTest, AServerThatDoesNotStartIsNamedWithItsLog) {
  EXPECT_EQ(Run("echo 'cannot bind' >&2; exit 69", kDone), ExitCode::kUnavailable);
  EXPECT_THAT(messages_.str(), HasSubstr("lost: exit code 69: cannot bind\n"));
}

TEST_F(TrainRunTest, AConfigurationErrorOfAProcessIsTheExitCodeOfTheRun) {
  EXPECT_EQ(Run("exit 78", kDone), ExitCode::kConfig);
}

TEST_F(TrainRunTest, WaitingForAServerToListenHasATimeout) {
  setting_.start_timeout = absl::ZeroDuration();
  EXPECT_EQ(Run("exec sleep 1000", kDone), ExitCode::kUnavailable);
  EXPECT_THAT(messages_.str(), HasSubstr("server 1: not listening after 0"));
}

TEST_F(TrainRunTest, AMissingProgramIsAnError) {
  setting_.programs = {"/nowhere/server", "/nowhere/worker"};
  Console console(messages_, {});
  TrainRun run(setting_, *signals_, *dir_, console, clock_);
  EXPECT_EQ(run.Run(), ExitCode::kUnavailable);
  EXPECT_THAT(messages_.str(), HasSubstr("/nowhere/server: cannot be run"));
}

TEST_F(TrainRunTest, ATerminatedRunStopsItsWorkersInOrder) {
  raise(SIGTERM);
  EXPECT_EQ(Run(kServer, kDone), ExitCode::kPreempted);
  EXPECT_TRUE(run_->result().interrupted);
}

TEST_F(TrainRunTest, AnInterruptStopsTheTrainingWorkers) {
  // Worker 0 sends SIGINT to the run, as Ctrl-C would. The run then sends SIGTERM to both workers,
  // and both end.
  const std::string worker = absl::StrCat("trap 'exit 75' TERM; [ \"$n\" = 1 ] || kill -INT ",
                                          getpid(), "; while :; do sleep 0.05; done");
  EXPECT_EQ(Run(kServer, worker), ExitCode::kInterrupted);
  EXPECT_EQ(run_->result().record.CountOf(State::kStopped), 2);
}

TEST_F(TrainRunTest, AClosedTerminalStopsTheWorkersInOrder) {
  // A shell that ends and its terminal both send SIGHUP.
  const std::string worker =
      absl::StrCat("trap 'kill -HUP ", getpid(), "; exit 75' TERM; [ \"$n\" = 1 ] || kill -HUP ",
                   getpid(), "; while :; do sleep 0.05; done");
  EXPECT_EQ(Run(kServer, worker), ExitCode::kPreempted);
  EXPECT_EQ(run_->result().record.CountOf(State::kStopped), 2);
  EXPECT_THAT(messages_.str(), testing::Not(HasSubstr("second signal")));
}

TEST_F(TrainRunTest, AStoppedWorkerMayDrainLongerThanAServerMayStop) {
  setting_.grace = absl::Milliseconds(100);
  setting_.config.mutable_consistency()->set_drain_seconds(30);
  const std::string worker = absl::StrCat(
      "trap \"sleep 1; touch ", dir_->PathOf("drained"), "$n; exit 75\" TERM; [ \"$n\" = 1 ] || ",
      "kill -INT ", getpid(), "; while :; do sleep 0.05; done");
  EXPECT_EQ(Run(kServer, worker), ExitCode::kInterrupted);
  EXPECT_TRUE(std::filesystem::exists(dir_->PathOf("drained0")));
  EXPECT_TRUE(std::filesystem::exists(dir_->PathOf("drained1")));
}

TEST_F(TrainRunTest, AWorkerThatDoesNotDrainInTimeIsKilled) {
  setting_.grace = absl::Milliseconds(100);
  setting_.config.mutable_consistency()->set_drain_seconds(0.1);
  const std::string worker = absl::StrCat("trap '' TERM; [ \"$n\" = 1 ] || kill -INT ", getpid(),
                                          "; while :; do sleep 0.05; done");
  EXPECT_EQ(Run(kServer, worker), ExitCode::kInterrupted);
  EXPECT_THAT(run_->result().record.workers()[0].reason, HasSubstr("killed by signal 9"));
}

TEST_F(TrainRunTest, AProcessThatIgnoresItsSignalIsKilled) {
  setting_.grace = absl::Milliseconds(100);
  EXPECT_EQ(Run("trap '' TERM; echo listening 127.0.0.1:1; while :; do sleep 0.05; done", kDone),
            ExitCode::kOk);
  EXPECT_THAT(messages_.str(), HasSubstr("did not stop within 100ms; killing them"));
}

TEST_F(TrainRunTest, AWorkerCannotReportForAnother) {
  EXPECT_EQ(Run(kServer, "[ \"$n\" = 1 ] || n=1; " + std::string(kDone)), ExitCode::kOk);
  EXPECT_EQ(StateOf(0), State::kLost);
  EXPECT_EQ(StateOf(1), State::kDone);
}

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

// Resumes a job of one worker, which joins at STEP and plans 9 steps.
class ResumeTest : public TrainRunTest {
 protected:
  ExitCode ResumeFrom(uint64_t step) {
    setting_.config.mutable_consistency()->set_workers(1);
    setting_.resume = true;
    const std::string worker = absl::StrCat(
        "echo '{\"worker\":0,\"joined\":{\"step\":\"", step, "\",\"planned_steps\":\"9\"}}'; ",
        "echo '{\"worker\":0,\"done\":{\"steps\":\"", step < 9 ? 9 - step : 0, "\"}}'");
    return Run(kServer, worker);
  }
};

TEST_F(ResumeTest, AResumedRunGoesOnFromTheFirstStepOfItsWorkers) {
  EXPECT_EQ(ResumeFrom(4), ExitCode::kOk) << messages_.str();
  EXPECT_EQ(run_->result().resumed_step, 4);
  EXPECT_EQ(run_->result().record.steps(), 9);
  EXPECT_THAT(messages_.str(), HasSubstr("going on from step 4\n"));
  EXPECT_THAT(messages_.str(), testing::Not(HasSubstr("already finished")));
}

TEST_F(ResumeTest, AResumedRunThatWasFinishedSaysSo) {
  for (const uint64_t step : {9, 11}) {
    EXPECT_EQ(ResumeFrom(step), ExitCode::kOk) << messages_.str();
    EXPECT_EQ(run_->result().resumed_step, 9);
    EXPECT_THAT(messages_.str(), HasSubstr("the run had already finished all 9 steps; more "
                                           "--epochs let it go on\n"));
    EXPECT_THAT(messages_.str(), testing::Not(HasSubstr("going on")));
  }
}

TEST_F(ResumeTest, ARestartedWorkerDoesNotChangeTheResumedStep) {
  setting_.config.mutable_consistency()->set_workers(1);
  setting_.resume = true;
  setting_.restarts = 1;
  const std::string mark = dir_->PathOf("mark");
  const std::string worker = absl::StrCat(
      "s=3; [ -e ", mark, " ] && s=5; echo '{\"worker\":0,\"joined\":{\"step\":\"'$s'\",",
      "\"planned_steps\":\"9\"}}'; [ -e ", mark, " ] || { touch ", mark, "; kill -9 $$; }; ",
      kDone);
  EXPECT_EQ(Run(kServer, worker), ExitCode::kOk) << messages_.str();
  EXPECT_EQ(run_->result().resumed_step, 3);
}

}  // namespace
}  // namespace thinwire
