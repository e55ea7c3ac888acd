// Tests how a cluster of real processes reacts to killed, restarted and suspended processes and to
// wrong configurations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Setting {
  std::string mode = "mode: sync";
  std::string model = "softmax";
  uint32_t workers = 3;
  double lease_seconds = 2;
  uint32_t epochs = 3;
  double delay_seconds = 0.02;
  uint32_t train_examples = 3000;
  std::string more = "";  // additional fields of the job file
  std::vector<std::string> worker_flags = {};
};

class FaultsTest : public testing::Test {
 protected:
  std::string JobFile(const Setting& job) const {
    return absl::StrCat("name: \"faults\" servers: ", server_count_, " silence_seconds: 4",
                        " consistency { ", job.mode, " workers: ", job.workers,
                        " lease_seconds: ", job.lease_seconds, " start_timeout_seconds: 30 }",
                        " optimization { learning_rate: 0.01 } task { model: ", job.model,
                        " train_examples: ", job.train_examples,
                        " test_examples: 500 batch_size: 50 epochs: ", job.epochs, " } ", job.more);
  }

  std::vector<std::string> WorkerFlags(const Setting& job, uint32_t worker) const {
    std::vector<std::string> flags = {"--worker",    absl::StrCat(worker),
                                      "--addresses", absl::StrJoin(addresses_, ","),
                                      "--delay",     absl::StrCat(job.delay_seconds, "s")};
    flags.insert(flags.end(), job.worker_flags.begin(), job.worker_flags.end());
    return flags;
  }

  static std::string ServerName(uint32_t server) { return absl::StrCat("server", server); }
  static std::string WorkerName(uint32_t worker) { return absl::StrCat("worker", worker); }

  void StartServers(const Setting& job) {
    addresses_.assign(server_count_, "127.0.0.1:0");
    // Server 0 is the last one, because it needs the addresses of the others.
    for (uint32_t s = server_count_; s-- > 0;) StartServer(job, s);
  }

  void StartServer(const Setting& job, uint32_t server) {
    daemons_.StartServer(server, JobFile(job), addresses_);
  }

  void StartWorker(const Setting& job, uint32_t worker) {
    daemons_.StartWorker(WorkerName(worker), JobFile(job), WorkerFlags(job, worker));
  }

  void StartAll(const Setting& job) {
    StartServers(job);
    for (uint32_t w = 0; w < job.workers; ++w) StartWorker(job, w);
  }

  void ExpectDone(uint32_t worker) {
    EXPECT_TRUE(daemons_.WaitForEvent(WorkerName(worker), IsEvent(WorkerEvent::kDone)).has_value());
    const ProcessResult end = daemons_.WaitForEnd(WorkerName(worker));
    EXPECT_EQ(end.exit, ExitStatus()) << end.log;
  }

  // Kills worker 1 during training and expects the other workers to finish.
  void OthersFinishWithoutWorkerOne(const Setting& job) {
    StartAll(job);
    ASSERT_TRUE(daemons_.WaitForEvent("worker1", IsStep(5)).has_value());
    daemons_.Signal("worker1", SIGKILL);
    ExpectDone(0);
    ExpectDone(2);
  }

  void NobodyJoinsAfterARestartOf(uint32_t server);

  // Kills SERVER and starts it again at the same address.
  void Restart(const Setting& job, uint32_t server) {
    daemons_.Signal(ServerName(server), SIGKILL);
    daemons_.WaitForEnd(ServerName(server));
    StartServer(job, server);
  }

  // Expects that WORKER ends with an error whose message contains TEXT.
  void ExpectFailure(const std::string& worker, const std::string& text) {
    const auto error = daemons_.WaitForEvent(worker, IsEvent(WorkerEvent::kError));
    ASSERT_TRUE(error.has_value());
    EXPECT_THAT(error->error().message(), HasSubstr(text));
    EXPECT_NE(daemons_.WaitForEnd(worker).exit, ExitStatus());
  }

  const uint32_t server_count_ = 2;
  Daemons daemons_;
  std::vector<std::string> addresses_;
};

TEST_F(FaultsTest, Promise1SyncContinuesWithoutAKilledWorker) { OthersFinishWithoutWorkerOne({}); }

TEST_F(FaultsTest, Promise1SspContinuesWithoutAKilledWorker) {
  OthersFinishWithoutWorkerOne({.mode = "mode: ssp slack: 2"});
}

// The others finish long before the lease of worker 1 expires, so they do not wait for it.
TEST_F(FaultsTest, Promise1BackupContinuesAtOnceWithoutAKilledWorker) {
  OthersFinishWithoutWorkerOne({.mode = "mode: backup backup: 1", .lease_seconds = 600});
}

TEST_F(FaultsTest, Promise1AsyncContinuesAtOnceWithoutAKilledWorker) {
  OthersFinishWithoutWorkerOne({.mode = "mode: async", .lease_seconds = 600});
}

TEST_F(FaultsTest, WaitingMessageNamesTheMissingWorker) {
  const Setting job{.lease_seconds = 8};
  StartAll(job);
  ASSERT_TRUE(daemons_.WaitForEvent("worker1", IsStep(5)).has_value());
  daemons_.Signal("worker1", SIGSTOP);
  // Matches only waiting events that name worker 1: on a busy machine, earlier waiting events
  // report that workers wait for the start of the job.
  const auto names_worker1 = [](const WorkerEvent& event) {
    return absl::StrContains(event.waiting().text(), "worker 1");
  };
  EXPECT_TRUE(daemons_.WaitForEvent("worker0", names_worker1).has_value());
  daemons_.Signal("worker1", SIGCONT);
  ExpectDone(0);
  ExpectDone(1);
  ExpectDone(2);
}

TEST_F(FaultsTest, RestartedWorkerContinuesAtTheStepOfTheOthers) {
  const Setting job{.epochs = 8, .delay_seconds = 0.05};
  StartAll(job);
  ASSERT_TRUE(daemons_.WaitForEvent("worker1", IsStep(5)).has_value());
  daemons_.Signal("worker1", SIGKILL);
  daemons_.WaitForEnd("worker1");
  StartWorker(job, 1);
  const auto joined = daemons_.WaitForEvent("worker1", IsEvent(WorkerEvent::kJoined));
  ASSERT_TRUE(joined.has_value());
  EXPECT_GT(joined->joined().step(), 5);
  ExpectDone(0);
  ExpectDone(1);
  ExpectDone(2);
}

TEST_F(FaultsTest, EveryWorkerNamesAKilledServer) {
  const Setting job{.epochs = 50};
  StartAll(job);
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsStep(5)).has_value());
  daemons_.Signal("server1", SIGKILL);
  for (uint32_t w = 0; w < job.workers; ++w) {
    const auto error = daemons_.WaitForEvent(WorkerName(w), IsEvent(WorkerEvent::kError));
    ASSERT_TRUE(error.has_value());
    EXPECT_THAT(error->error().message(),
                HasSubstr(absl::StrCat("server 1 (", addresses_[1], ")")));
    const ProcessResult end = daemons_.WaitForEnd(WorkerName(w));
    EXPECT_EQ(end.exit, ExitStatus{.code = 69}) << end.log;
  }
}

// Kills a server during training and starts it again at the same address, without its state.
// Expects that all workers end with a message, and that no worker can join.
void FaultsTest::NobodyJoinsAfterARestartOf(uint32_t server) {
  const Setting job{.workers = 2, .epochs = 50};
  const std::string lost = absl::StrCat("server ", server, " lost its state");
  StartAll(job);
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsStep(5)).has_value());
  Restart(job, server);
  for (const char* worker : {"worker0", "worker1"}) ExpectFailure(worker, lost);
  StartWorker(job, 1);
  ExpectFailure("worker1", lost);
}

TEST_F(FaultsTest, AServerThatLostItsStateEndsTheJob) { NobodyJoinsAfterARestartOf(1); }

TEST_F(FaultsTest, ALeadThatLostItsStateEndsTheJob) { NobodyJoinsAfterARestartOf(0); }

TEST_F(FaultsTest, ANewRunBeginsWhenAllServersLostTheirState) {
  Setting job{.workers = 1, .epochs = 50};
  StartAll(job);
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsStep(5)).has_value());
  Restart(job, 0);
  Restart(job, 1);
  ExpectFailure("worker0", "lost its state");
  StartWorker(job, 0);
  const auto joined = daemons_.WaitForEvent("worker0", IsEvent(WorkerEvent::kJoined));
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(joined->joined().step(), 0);
  EXPECT_TRUE(daemons_.WaitForEvent("worker0", IsStep(1)).has_value());
}

// Worker 0 has uploaded the first values, and waits for worker 1 when a server is restarted.
TEST_F(FaultsTest, AServerThatLostFirstValuesEndsTheJob) {
  const Setting job{.workers = 2};
  StartServers(job);
  StartWorker(job, 0);
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsEvent(WorkerEvent::kJoined)).has_value());
  Restart(job, 1);
  ExpectFailure("worker0", "server 1 lost its state");
  StartWorker(job, 1);
  ExpectFailure("worker1", "server 1 lost its state");
}

TEST_F(FaultsTest, TheLeadNamesAServerThatItCannotReach) {
  const Setting job{.workers = 1};
  addresses_ = {"127.0.0.1:0", "127.0.0.1:1"};
  StartServer(job, 0);
  StartWorker(job, 0);
  ExpectFailure("worker0", "server 0 cannot reach server 1 (127.0.0.1:1)");
  daemons_.Signal("server0", SIGTERM);
  EXPECT_EQ(daemons_.WaitForEnd("server0").exit, ExitStatus());
}

TEST_F(FaultsTest, OthersContinueAtOnceAfterAWorkerIsTerminated) {
  const Setting job{.lease_seconds = 30, .epochs = 6};
  StartAll(job);
  ASSERT_TRUE(daemons_.WaitForEvent("worker1", IsStep(5)).has_value());
  daemons_.Signal("worker1", SIGTERM);
  EXPECT_EQ(daemons_.WaitForEnd("worker1").exit, ExitStatus{.code = 75});
  ExpectDone(0);  // worker 0 finishes long before the lease of worker 1 expires
  ExpectDone(2);
  daemons_.Signal("server0", SIGTERM);
  daemons_.Signal("server1", SIGTERM);
  EXPECT_EQ(daemons_.WaitForEnd("server0").exit, ExitStatus());
  EXPECT_EQ(daemons_.WaitForEnd("server1").exit, ExitStatus());
}

// The servers keep no checkpoints, so a worker saves its residuals only when it joins and when
// SIGTERM ends it. A killed worker has pushed gradients since.
TEST_F(FaultsTest, ResidualsAreRestoredAfterTerminationAndAKill) {
  const Setting job{.workers = 1,
                    .train_examples = 60000,
                    .more = "compression { push: topk momentum_correction: true }",
                    .worker_flags = {"--state_dir", daemons_.folder() + "/state"}};
  StartAll(job);
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsStep(5)).has_value());
  daemons_.Signal("worker0", SIGTERM);
  EXPECT_THAT(daemons_.WaitForEnd("worker0").log, HasSubstr("worker-0: no file yet"));

  StartWorker(job, 0);
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsEvent(WorkerEvent::kStep)).has_value());
  daemons_.Signal("worker0", SIGKILL);
  EXPECT_THAT(daemons_.WaitForEnd("worker0").log, HasSubstr(", restored"));

  StartWorker(job, 0);
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsEvent(WorkerEvent::kStep)).has_value());
  daemons_.Signal("worker0", SIGTERM);
  const ProcessResult end = daemons_.WaitForEnd("worker0");
  // The kill may have come while every shard was being pushed.
  EXPECT_THAT(end.log, AnyOf(HasSubstr("/live: restored for "), HasSubstr(" are dropped")));
  EXPECT_EQ(end.exit, ExitStatus{.code = 75});
}

TEST_F(FaultsTest, SecondProcessWithTheSameWorkerNumberIsRefused) {
  const Setting job{.epochs = 50};
  StartAll(job);
  ASSERT_TRUE(daemons_.WaitForEvent("worker1", IsStep(5)).has_value());
  daemons_.StartWorker("impostor", JobFile(job), WorkerFlags(job, 1));
  const ProcessResult impostor = daemons_.WaitForEnd("impostor");
  EXPECT_EQ(impostor.exit, ExitStatus{.code = 76}) << impostor.log;
  EXPECT_THAT(impostor.output, HasSubstr("worker 1: is in use; its process sent a message"));
  EXPECT_THAT(impostor.output, HasSubstr("; worker 1 tried to join for"));
  // The first process of worker 1 continues to train.
  EXPECT_TRUE(daemons_.WaitForEvent("worker1", IsStep(10)).has_value());
}

TEST_F(FaultsTest, WorkerWithAnotherModelIsRefused) {
  const Setting job{.epochs = 50};
  StartAll(job);
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsStep(5)).has_value());
  Setting other = job;
  other.model = "mlp";
  daemons_.StartWorker("stranger", JobFile(other), WorkerFlags(other, 2));
  const ProcessResult stranger = daemons_.WaitForEnd("stranger");
  EXPECT_EQ(stranger.exit, ExitStatus{.code = 78}) << stranger.log;
  EXPECT_THAT(stranger.output, HasSubstr("model"));
  EXPECT_TRUE(daemons_.WaitForEvent("worker2", IsStep(10)).has_value());
}

TEST_F(FaultsTest, WorkerWhoseModelNeedsTooMuchMemoryEndsWithTheLimit) {
  const Setting job{.workers = 1};
  setenv("THINWIRE_MEMORY_BUDGET", "9KB", /*overwrite=*/1);
  StartAll(job);
  unsetenv("THINWIRE_MEMORY_BUDGET");
  const ProcessResult end = daemons_.WaitForEnd("worker0");
  EXPECT_EQ(end.exit, ExitStatus{.code = 78}) << end.log;
  EXPECT_THAT(
      end.output,
      HasSubstr("needs too much memory on server 0 (expected at most 9216 "
                "bytes, its --memory_budget or else the memory that was free at its start, got "));
}

TEST_F(FaultsTest, PortInUseIsNamedInTheError) {
  const Setting job;
  StartServers(job);
  const ProcessResult second =
      daemons_.Run("server/server", {"--config", daemons_.Write("taken.textproto", JobFile(job)),
                                     "--server", "1", "--listen", addresses_[0]});
  EXPECT_EQ(second.exit, ExitStatus{.code = 69});
  EXPECT_THAT(second.log, HasSubstr(addresses_[0]));
}

TEST_F(FaultsTest, ServerRefusesNonLoopbackAddressWithoutInsecure) {
  const std::string file = daemons_.Write("open.textproto", JobFile({}));
  const ProcessResult run =
      daemons_.Run("server/server", {"--config", file, "--server", "1", "--listen", "0.0.0.0:0"});
  EXPECT_EQ(run.exit, ExitStatus{.code = 78});
  EXPECT_THAT(run.log, HasSubstr("--listen: reachable from other machines without credentials"));
  EXPECT_THAT(run.log, HasSubstr("0.0.0.0:0"));
  // Without --listen, the server would listen on its own address in --addresses.
  const ProcessResult listed = daemons_.Run(
      "server/server", {"--config", file, "--addresses", "10.0.0.1:7000,10.0.0.2:7000"});
  EXPECT_EQ(listed.exit, ExitStatus{.code = 78});
  EXPECT_THAT(listed.log, HasSubstr("got 10.0.0.1:7000"));
}

TEST_F(FaultsTest, ConfigurationErrorsNameLineAndField) {
  const auto complaint = [this](const std::string& program, std::string_view job,
                                std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"--config", daemons_.Write("bad.textproto", job)});
    const ProcessResult run = daemons_.Run(program, flags);
    EXPECT_EQ(run.exit, ExitStatus{.code = 78}) << run.log;
    return run.log;
  };
  const std::vector<std::string> addresses = {"--addresses", "127.0.0.1:1"};
  EXPECT_THAT(complaint("server/server", "servers: 1\nserverz: 2\n"),
              HasSubstr(":2:1: serverz: unknown field (did you mean servers?)"));
  EXPECT_THAT(complaint("server/server", "servers: 1\nname: two\n"), HasSubstr(":2:1: name: "));
  EXPECT_THAT(complaint("server/server", "", {"--server", "1"}),
              HasSubstr("--server: out of range (expected below 1, the value of servers, got 1)"));
  EXPECT_THAT(complaint("server/server", "servers: 2"), HasSubstr("--addresses: missing"));
  EXPECT_THAT(
      complaint("server/server", "servers: 2", {"--addresses", "127.0.0.1:0,127.0.0.1:0"}),
      HasSubstr("--addresses: wrong value (expected host:port with a port from 1 to 65535"));
  EXPECT_THAT(complaint("server/server", "servers: 2", {"--addresses", "127.0.0.1:1"}),
              HasSubstr("--addresses: wrong number of servers (expected 2"));
  EXPECT_THAT(complaint("worker/worker", "task { model: cmn }", addresses),
              HasSubstr("did you mean cnn?"));
  EXPECT_THAT(
      complaint("worker/worker", "", {"--addresses", "127.0.0.1:1", "--worker", "64"}),
      HasSubstr(
          "worker: --worker: out of range (expected below 64, the value of max_workers, got 64)"));
  EXPECT_THAT(complaint("worker/worker", "", {"--addresses", "127.0.0.1"}),
              HasSubstr("--addresses: wrong value (expected host:port"));
  const std::string missing =
      complaint("worker/worker", "task { data_dir: \"/nowhere\" }", addresses);
  EXPECT_THAT(missing, HasSubstr("/nowhere"));
  EXPECT_THAT(missing, HasSubstr("dataset-fashion-mnist"));
}

TEST_F(FaultsTest, WorkerNamesAnUnreachableServer) {
  const ProcessResult run = daemons_.Run(
      "worker/worker",
      {"--config",
       daemons_.Write("alone.textproto",
                      "consistency { start_timeout_seconds: 1 } task { model: softmax }"),
       "--addresses", "127.0.0.1:1"});
  EXPECT_EQ(run.exit, ExitStatus{.code = 69});
  EXPECT_THAT(run.output, HasSubstr("server 0 (127.0.0.1:1): connection refused; worker 0 tried "));
}

TEST_F(FaultsTest, WorkerMayStartBeforeItsServer) {
  const Setting job{.workers = 1, .epochs = 1, .delay_seconds = 0};
  StartServers(job);
  for (uint32_t s = 0; s < server_count_; ++s) {
    daemons_.Signal(ServerName(s), SIGTERM);
    daemons_.WaitForEnd(ServerName(s));
  }
  StartWorker(job, 0);
  const std::string waiting =
      absl::StrCat("waiting for server 0 (", addresses_[0], "): connection refused");
  EXPECT_TRUE(daemons_.WaitForLog("worker0", waiting));
  const auto reports_wait = [&](const WorkerEvent& event) {
    return event.waiting().text() == waiting;
  };
  EXPECT_TRUE(daemons_.WaitForEvent("worker0", reports_wait).has_value());
  const std::vector<std::string> addresses = addresses_;
  for (uint32_t s = 0; s < server_count_; ++s) StartServer(job, s);
  EXPECT_EQ(addresses_, addresses);
  ExpectDone(0);
}

TEST_F(FaultsTest, SigtermEndsTheWaitForAServerThatDoesNotAnswer) {
  const Setting job;
  StartServers(job);
  daemons_.Signal("server0", SIGSTOP);
  StartWorker(job, 0);
  EXPECT_TRUE(daemons_.WaitForLog("worker0", "waiting for server 0"));
  daemons_.Signal("worker0", SIGTERM);
  const ProcessResult end = daemons_.WaitForEnd("worker0");
  EXPECT_EQ(end.exit, ExitStatus{.code = 75}) << end.log;
  EXPECT_THAT(end.output, HasSubstr("\"done\""));
  daemons_.Signal("server0", SIGCONT);
}

TEST_F(FaultsTest, SigtermEndsTheWaitForAnotherWorker) {
  const Setting job{.lease_seconds = 30,
                    .worker_flags = {"--state_dir", daemons_.folder() + "/state"}};
  StartServers(job);
  StartWorker(job, 0);
  const auto waits = [](const WorkerEvent& event) {
    return absl::StrContains(event.waiting().text(), "waits for workers, 1 of 3 joined");
  };
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", waits).has_value());
  daemons_.Signal("worker0", SIGTERM);
  const ProcessResult end = daemons_.WaitForEnd("worker0");
  EXPECT_EQ(end.exit, ExitStatus{.code = 75}) << end.log;
  EXPECT_THAT(end.output, HasSubstr("\"done\""));
  EXPECT_THAT(end.log, Not(HasSubstr("not saved")));
  // The worker has left: a new process takes its number without waiting for the lease.
  StartWorker(job, 0);
  EXPECT_TRUE(daemons_.WaitForEvent("worker0", IsEvent(WorkerEvent::kJoined)).has_value());
}

}  // namespace
}  // namespace thinwire
