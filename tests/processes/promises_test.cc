// Tests promises of docs/testing.md with real processes behind fault proxies. The number in a name
// is the number of the promise. faults_test.cc has the tests of promise 1. If the environment
// variable THINWIRE_LONG_FAULTS is set, the faults of promises 3, 4 and 11 last several times as
// long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/rpc/server_calls.h"
#include "common/testing/safetensors_file.h"
#include "proto/control.pb.h"
#include "proto/worker_event.pb.h"
#include "tests/processes/daemons.h"
#include "tests/fault_proxy/proxy_thread.h"

namespace thinwire {
namespace {

bool LongFaults() { return std::getenv("THINWIRE_LONG_FAULTS") != nullptr; }

struct Setting {
  std::string mode = "mode: sync";
  std::string model = "softmax";
  uint32_t workers = 4;
  double lease_seconds = 2;
  double silence_seconds = 60;
  uint32_t train_examples = 3000;
  uint32_t epochs = 10;
  std::string delay = "20ms";
  std::string task = "";  // additional fields of the task
};

// Returns a safetensors file with EXAMPLES examples of VALUES values. The label of the last example
// is CLASSES - 1.
std::string ManyClasses(int examples, int values, int classes) {
  const std::vector<float> x(static_cast<size_t>(examples) * values, 0.01f);
  std::vector<int32_t> y(examples, 0);
  y.back() = classes - 1;
  const size_t split = x.size() * sizeof(float);
  const std::string header =
      absl::StrCat(R"({"x":{"dtype":"F32","shape":[)", examples, ",", values,
                   R"(],"data_offsets":[0,)", split, R"(]},"y":{"dtype":"I32","shape":[)", examples,
                   R"(],"data_offsets":[)", split, ",", split + y.size() * sizeof(int32_t), "]}}");
  return SafetensorsFile(header, ValueBytes(x) + ValueBytes(y));
}

class PromisesTest : public testing::Test {
 protected:
  static std::string JobFile(const Setting& job) {
    return absl::StrCat("name: \"promises\" servers: ", kServers,
                        " silence_seconds: ", job.silence_seconds, " consistency { ", job.mode,
                        " workers: ", job.workers, " lease_seconds: ", job.lease_seconds,
                        " start_timeout_seconds: 60 } optimization { learning_rate: 0.01 } ",
                        "compression { push: fp32 pull: fp32 } task { model: ", job.model,
                        " train_examples: ", job.train_examples,
                        " test_examples: 500 batch_size: 50 epochs: ", job.epochs, " ", job.task,
                        " }");
  }

  static std::string NameOf(uint32_t worker) { return absl::StrCat("worker", worker); }

  // Starts the servers, and one proxy for each server.
  void StartServers(const Setting& job) {
    addresses_.assign(kServers, "127.0.0.1:1");
    for (uint32_t s = kServers; s-- > 0;) {
      std::vector<std::string> flags = {"--server", absl::StrCat(s)};
      if (s == 0) flags.insert(flags.end(), {"--addresses", absl::StrJoin(addresses_, ",")});
      addresses_[s] = daemons_.StartServer(absl::StrCat("server", s), JobFile(job), flags);
      ASSERT_NE(addresses_[s], "");
    }
    for (const std::string& address : addresses_) {
      auto proxy = ProxyThread::Start({.target = address});
      ASSERT_TRUE(proxy.ok()) << proxy.status();
      proxies_.push_back(*std::move(proxy));
    }
  }

  void StartWorker(const Setting& job, uint32_t worker, bool through_proxies) {
    std::vector<std::string> addresses = addresses_;
    for (uint32_t s = 0; s < kServers && through_proxies; ++s) {
      addresses[s] = proxies_[s]->address();
    }
    daemons_.StartWorker(NameOf(worker), JobFile(job),
                         {"--worker", absl::StrCat(worker), "--addresses",
                          absl::StrJoin(addresses, ","), "--delay", job.delay});
  }

  void CommandProxies(const std::string& command) {
    for (const auto& proxy : proxies_) ASSERT_EQ(proxy->Command(command), absl::OkStatus());
  }

  // Waits until WORKER has finished STEP. Returns its newest step.
  uint64_t WaitForStep(uint32_t worker, uint64_t step) {
    const auto event = daemons_.WaitForEvent(NameOf(worker), IsStep(step));
    return event.has_value() ? event->step().step() : 0;
  }

  // Expects that WORKER finishes. Returns its counters.
  WorkerCounters ExpectDone(uint32_t worker) {
    const auto done = daemons_.WaitForEvent(NameOf(worker), IsEvent(WorkerEvent::kDone));
    const ProcessResult end = daemons_.WaitForEnd(NameOf(worker));
    EXPECT_EQ(end.exit, ExitStatus()) << end.log;
    return done.has_value() ? done->done().counters() : WorkerCounters();
  }

  std::vector<StatusReply> Statuses() {
    auto statuses = ServerCalls(addresses_).Status(absl::Seconds(30));
    EXPECT_TRUE(statuses.ok()) << statuses.status();
    return statuses.ok() ? *std::move(statuses) : std::vector<StatusReply>();
  }

  uint64_t LeaseExpirations() {
    uint64_t count = 0;
    for (const StatusReply& status : Statuses()) count += status.lease_expirations();
    return count;
  }

  void HalfOfTheWorkersAreCutOff(const std::string& mode, uint64_t max_staleness);

  static constexpr uint32_t kServers = 2;
  Daemons daemons_;  // must be created before the threads of proxies start
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<ProxyThread>> proxies_;
};

// Cuts workers 2 and 3 off until worker 0 has finished 50 (long faults: 500) more steps. In the
// modes that wait for live workers, this takes longer than a lease. Expects that all workers
// finish, and that no accepted gradient exceeds MAX_STALENESS.
void PromisesTest::HalfOfTheWorkersAreCutOff(const std::string& mode, uint64_t max_staleness) {
  const Setting job{.mode = mode, .epochs = LongFaults() ? 60u : 16u};
  StartServers(job);
  for (uint32_t w = 0; w < job.workers; ++w) StartWorker(job, w, /*through_proxies=*/w >= 2);
  WaitForStep(2, 5);
  WaitForStep(3, 5);
  const uint64_t step = WaitForStep(0, 5);
  CommandProxies("cut both");
  WaitForStep(0, step + (LongFaults() ? 500 : 50));
  CommandProxies("restore");
  for (uint32_t w = 0; w < job.workers; ++w) ExpectDone(w);
  uint64_t accepted = 0;
  uint64_t staleness = 0;
  for (const StatusReply& status : Statuses()) {
    accepted += status.accepted_pushes();
    for (const auto& [value, count] : status.staleness()) staleness = std::max(staleness, value);
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LE(staleness, max_staleness);
}

TEST_F(PromisesTest, Promise4SyncContinuesWhenHalfOfTheWorkersAreCutOff) {
  HalfOfTheWorkersAreCutOff("mode: sync", 0);
}

TEST_F(PromisesTest, Promise4BackupContinuesWhenHalfOfTheWorkersAreCutOff) {
  HalfOfTheWorkersAreCutOff("mode: backup backup: 1", 0);
}

// While a gradient of step t is computed and pushed, the frontier is at least t - 2 and at most t.
// A shard accepts steps from its frontier to frontier + 2, so each of the three other workers has
// at most five accepted pushes in that time.
TEST_F(PromisesTest, Promise4SspKeepsItsBoundWhenHalfOfTheWorkersAreCutOff) {
  HalfOfTheWorkersAreCutOff("mode: ssp slack: 2", 3 * 5);
}

TEST_F(PromisesTest, Promise4AsyncContinuesWhenHalfOfTheWorkersAreCutOff) {
  HalfOfTheWorkersAreCutOff("mode: async", UINT64_MAX);
}

TEST_F(PromisesTest, Promise3NoLeaseExpiresWhileAServerIsSuspended) {
  const Setting job{.workers = 2, .lease_seconds = 4, .epochs = 4};
  StartServers(job);
  for (uint32_t w = 0; w < job.workers; ++w) StartWorker(job, w, /*through_proxies=*/false);
  WaitForStep(0, 5);
  daemons_.Signal("server1", SIGSTOP);
  // The duration of the fault. It is longer than a lease.
  absl::SleepFor(absl::Seconds(LongFaults() ? 30 : 5));
  daemons_.Signal("server1", SIGCONT);
  for (uint32_t w = 0; w < job.workers; ++w) ExpectDone(w);
  EXPECT_EQ(LeaseExpirations(), 0);
}

// A connection is reset with a probability of 1 % per second, and all connections twice.
TEST_F(PromisesTest, Promise11ASlowWireWithResetsTrains) {
  const Setting job{.model = "mlp",
                    .workers = 2,
                    .lease_seconds = 10,
                    .train_examples = 600,
                    .epochs = LongFaults() ? 60u : 1u,
                    .delay = "0s"};
  StartServers(job);
  CommandProxies("latency 80ms");
  CommandProxies("bandwidth 10Mbit");
  CommandProxies("slice 1400");
  CommandProxies("reset_rate 0.01");
  for (uint32_t w = 0; w < job.workers; ++w) StartWorker(job, w, /*through_proxies=*/true);
  // Each reset breaks the connections of both workers while they push or read.
  for (const uint64_t step : {1, 3}) {
    WaitForStep(0, step);
    CommandProxies("reset");
  }
  for (uint32_t w = 0; w < job.workers; ++w) EXPECT_GE(ExpectDone(w).reconnects(), 1) << w;
  for (const auto& proxy : proxies_) EXPECT_GE(proxy->counts().reset_count, 2);
  if (!LongFaults()) return;
  uint64_t resets = 0;
  for (const auto& proxy : proxies_) resets += proxy->counts().reset_count;
  std::printf("%llu resets\n", static_cast<unsigned long long>(resets));
  EXPECT_GT(resets, 2 * kServers * job.workers);
}

// The only matrix of the model has 4096 * 1000 values, 16.4 MB, of which each server has a half.
// One direction of a step takes 6.5 s, longer than the lease and than silence_seconds, so the run
// ends unless heartbeats pass beside the tensor.
TEST_F(PromisesTest, Promise11HeartbeatsPassWhileATensorOf16MBIsInFlight) {
  for (const char* name : {"train", "test"}) {
    std::ofstream(absl::StrCat(daemons_.folder(), "/", name, ".safetensors"), std::ios::binary)
        << ManyClasses(/*examples=*/50, /*values=*/4096, /*classes=*/1000);
  }
  const Setting job{
      .workers = 1,
      .lease_seconds = 3,
      .silence_seconds = 3,
      .train_examples = 50,
      .epochs = 1,
      .delay = "0s",
      .task = absl::StrCat("dataset: safetensors data_dir: \"", daemons_.folder(), "\"")};
  StartServers(job);
  CommandProxies("latency 80ms");
  CommandProxies("bandwidth 10Mbit");
  StartWorker(job, 0, /*through_proxies=*/true);
  EXPECT_EQ(ExpectDone(0).reconnects(), 0);
  EXPECT_EQ(LeaseExpirations(), 0);
  uint64_t received = 0;
  for (const StatusReply& status : Statuses())
    received += status.seed_payload_bytes() + status.push_payload_bytes();
  EXPECT_GE(received, 2u * 4096 * 1000 * sizeof(float)) << "first values and one gradient";
}

}  // namespace
}  // namespace thinwire
