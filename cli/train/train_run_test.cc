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
#include "cli/train/testing/train_run_fixture.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using State = WorkerRow::State;

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
  // Worker 0 interrupts the run when both workers handle SIGTERM.
  const std::string handles = dir_->PathOf("handles");
  const std::string worker = absl::StrCat(
      "trap \"sleep 1; touch ", dir_->PathOf("drained"), "$n; exit 75\" TERM; touch ", handles,
      "$n; [ \"$n\" = 1 ] || { until [ -e ", handles, "1 ]; do sleep 0.05; done; kill -INT ",
      getpid(), "; }; while :; do sleep 0.05; done");
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
