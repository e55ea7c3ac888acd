#include "cli/train_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using State = WorkerRow::State;

// Servers and workers are shell scripts: real processes that do not answer gRPC calls of the run.
class TrainRunTest : public testing::Test {
 protected:
  static constexpr char kServer[] = "echo listening 127.0.0.1:1; exec sleep 1000";
  // A worker's arguments are: --config FILE --worker NUMBER --addresses LIST.
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

TEST_F(TrainRunTest, TheLastLinesOfALostWorkerAreShown) {
  EXPECT_EQ(Run(kServer, "echo reading >&2; echo 'error: no such folder' >&2; exit 69"),
            ExitCode::kUnavailable);
  EXPECT_THAT(messages_.str(), HasSubstr("worker 0: error: no such folder\n"));
  EXPECT_THAT(messages_.str(),
              HasSubstr("last lines of worker 0:\n  reading\n  error: no such folder\n"));
}

TEST_F(TrainRunTest, ALostServerEndsTheRunOnceTheWorkersHaveReportedIt) {
  const std::string server =
      "echo listening 127.0.0.1:1; [ \"$3 $4\" = '--server 1' ] || exec sleep 1000; exec sleep 0";
  const std::string worker =
      "echo '{\"worker\":'${n:-0}',\"error\":{\"message\":\"server 1 is silent\"}}'; exit 69";
  EXPECT_EQ(Run(server, worker), ExitCode::kUnavailable);
  EXPECT_EQ(run_->result().record.CountOf(State::kLost), 2);
  EXPECT_THAT(messages_.str(), HasSubstr("lost: exit code 69: server 1 is silent"));
}

TEST_F(TrainRunTest, AServerThatDoesNotStartIsNamedWithItsLog) {
  EXPECT_EQ(Run("echo 'cannot bind' >&2; exit 69", kDone), ExitCode::kUnavailable);
  EXPECT_THAT(messages_.str(), HasSubstr("lost: exit code 69"));
  EXPECT_THAT(messages_.str(), HasSubstr("  cannot bind\n"));
}

TEST_F(TrainRunTest, AConfigurationErrorOfAProcessIsTheExitCodeOfTheRun) {
  EXPECT_EQ(Run("exit 78", kDone), ExitCode::kConfig);
}

TEST_F(TrainRunTest, WaitingForAServerToListenHasATimeout) {
  setting_.start_timeout = absl::ZeroDuration();
  EXPECT_EQ(Run("exec sleep 1000", kDone), ExitCode::kUnavailable);
  EXPECT_THAT(messages_.str(), HasSubstr("server 0: not listening after 0"));
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
  // Worker 0 sends SIGINT to the run, as Ctrl-C would. Both workers then stop at SIGTERM.
  const std::string worker = absl::StrCat("trap 'exit 75' TERM; [ \"$n\" = 1 ] || kill -INT ",
                                          getpid(), "; while :; do sleep 0.05; done");
  EXPECT_EQ(Run(kServer, worker), ExitCode::kInterrupted);
  EXPECT_EQ(run_->result().record.CountOf(State::kStopped), 2);
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

}  // namespace
}  // namespace thinwire
