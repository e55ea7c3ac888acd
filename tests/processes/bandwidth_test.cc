// Tests the limits --uplink and --downlink with real servers and workers: the bytes stay below the
// rates, the results are the same bits, and heartbeats, stops and checkpoints go on beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/rpc/server_calls.h"
#include "client/client.h"
#include "client/transport/grpc_transport.h"
#include "common/time/bandwidth_limit.h"
#include "common/time/thread_executor.h"
#include "proto/control.pb.h"
#include "proto/worker_event.pb.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

constexpr uint32_t kServers = 2;
constexpr uint32_t kWorkers = 2;

// Returns the largest number of bytes that may cross a limit of RATE bytes per second in TIME. At
// the end of the time, and as the first message in each direction, each stream may have sent a
// message of up to 1 MiB of payloads that is not paid yet.
double Allowed(double rate, absl::Duration time, uint32_t streams) {
  constexpr double kMessageBytes = 1.1e6;
  return rate * absl::ToDoubleSeconds(time) + 2 * streams * kMessageBytes;
}

class BandwidthTest : public testing::Test {
 protected:
  void StartServers(const std::string& job, const std::vector<std::string>& flags) {
    addresses_.assign(kServers, "127.0.0.1:0");
    for (uint32_t s = kServers; s-- > 0;) daemons_.StartServer(s, job, addresses_, flags);
  }
  std::vector<StatusReply> Statuses() {
    auto statuses = ServerCalls(addresses_).Status(absl::Seconds(30));
    EXPECT_TRUE(statuses.ok()) << statuses.status();
    return statuses.ok() ? *std::move(statuses) : std::vector<StatusReply>();
  }

  Daemons daemons_;  // must be created before other threads start
  std::vector<std::string> addresses_;
};

class BandwidthInModeTest : public BandwidthTest,
                            public testing::WithParamInterface<std::string> {};

TEST_P(BandwidthInModeTest, BytesStayBelowTheRatesOfWorkersAndServers) {
  constexpr double kWorkerRate = 4e6, kServerRate = 5e6;  // bytes per second
  constexpr uint64_t kSteps = 12;
  constexpr uint64_t kSide = 1000;  // a gradient has kSide * kSide values of 4 bytes
  StartServers(absl::StrCat("servers: 2 consistency { ", GetParam(), " workers: 2 }"),
               {"--uplink", "40mbit", "--downlink", "40mbit"});
  ASSERT_FALSE(HasFatalFailure());
  const absl::Time start = absl::Now();
  std::vector<WorkerCounters> counters(kWorkers);
  std::vector<std::thread> workers;
  for (uint32_t w = 0; w < kWorkers; ++w) {
    workers.emplace_back([&, w] {
      Threads threads;
      GrpcTransport transport(addresses_, Credentials(),
                              Bandwidth({.up = kWorkerRate, .down = kWorkerRate}, threads));
      ClientOptions options;
      options.worker = WorkerId{w};
      options.worker_count = kWorkers;
      options.server_count = kServers;
      options.silence = absl::Minutes(1);
      const auto client = *Client::Make(options, {{"w", {kSide, kSide}}}, transport, threads);
      const std::vector<float> values(kSide * kSide, 0.5f);
      const std::vector<std::span<const float>> initial = {values};
      absl::StatusOr<Step> step = client->Join(initial);
      while (step.ok() && *step < Step{kSteps}) {
        client->BeginStep(*step, 1);
        ASSERT_EQ(client->WaitAll(), absl::OkStatus());
        client->Ready(0, values);
        ASSERT_EQ(client->EndStep(), absl::OkStatus());
        step = client->NextStep();
      }
      ASSERT_TRUE(step.ok()) << step.status();
      ASSERT_EQ(client->Leave(), absl::OkStatus());
      counters[w] = client->counters();
    });
  }
  for (std::thread& worker : workers) worker.join();
  const absl::Duration time = absl::Now() - start;
  for (const WorkerCounters& worker : counters) {
    // A late worker of mode backup skips steps.
    EXPECT_GT(worker.sent_bytes(), kSteps / 2 * kSide * kSide * 4);
    EXPECT_LE(worker.sent_bytes(), Allowed(kWorkerRate, time, kServers));
    EXPECT_LE(worker.received_bytes(), Allowed(kWorkerRate, time, kServers));
    EXPECT_EQ(worker.reconnects(), 0u);
  }
  for (const StatusReply& server : Statuses()) {
    EXPECT_GT(server.stream_received_bytes(), kSteps / 2 * kSide * kSide * 4);
    EXPECT_LE(server.stream_received_bytes(), Allowed(kServerRate, time, kWorkers));
    EXPECT_LE(server.stream_sent_bytes(), Allowed(kServerRate, time, kWorkers));
    EXPECT_EQ(server.lease_expirations(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, BandwidthInModeTest,
                         testing::Values("mode: sync", "mode: backup backup: 1",
                                         "mode: ssp slack: 2", "mode: async"));

// Returns a job file for softmax regression on a part of Fashion-MNIST. CONSISTENCY and MORE: further
// fields.
std::string TrainJob(uint32_t epochs, const std::string& consistency = "",
                     const std::string& more = "") {
  return absl::StrCat("servers: 2 consistency { mode: sync workers: 2 ordered_fold: true ",
                      consistency, " } optimization { learning_rate: 0.01 } ",
                      "task { model: softmax train_examples: 1000 test_examples: 500 ",
                      "batch_size: 50 seed: 7 epochs: ", epochs, " } ", more);
}

TEST_F(BandwidthTest, TheParametersAreTheSameBits) {
  std::vector<nlohmann::json> reports;
  for (const std::string durability : {"none", "none", "checkpoint", "log"}) {
    const std::string report = absl::StrCat(daemons_.folder(), "/", reports.size(), ".json");
    std::vector<std::string> arguments = {
        "train",    "--config",       daemons_.Write("train.textproto", TrainJob(1)),
        "--report", report,           "--durability",
        durability, "--price_per_gb", "1000000"};
    if (!reports.empty()) {
      arguments.insert(arguments.end(), {"--uplink", "2mbit", "--downlink", "2mbit"});
    }
    const ProcessResult run = daemons_.Run("cli/thinwire", arguments);
    ASSERT_EQ(run.exit, ExitStatus()) << run.log << run.output;
    EXPECT_THAT(run.output, testing::HasSubstr("traffic per hour"));
    reports.push_back(ReadReport(report));
    const nlohmann::json& traffic = reports.back()["traffic"];
    EXPECT_EQ(traffic["sent_bytes"], reports.back()["sent_bytes"]);
    EXPECT_DOUBLE_EQ(
        traffic["bill"].get<double>(),
        (traffic["sent_bytes"].get<double>() + traffic["received_bytes"].get<double>()) / 1e3);
    EXPECT_EQ(reports.back()["final_parameters_crc32c"], reports[0]["final_parameters_crc32c"]);
    EXPECT_EQ(reports.back()["final_test_loss"], reports[0]["final_test_loss"]);
  }
  EXPECT_GT(reports[0]["sent_bytes"], 10 * 2 * 7850 * 4);
}

TEST_F(BandwidthTest, HeartbeatsStopsAndCheckpointsDoNotWaitForMessages) {
  // A gradient takes 2.5 s, longer than the lease and the limit of silence.
  const std::string job =
      TrainJob(100, "lease_seconds: 2", "silence_seconds: 2 recovery { durability: log }");
  const std::vector<std::string> limits = {"--uplink", "100kbit", "--downlink", "100kbit"};
  std::vector<std::string> flags = limits;
  flags.insert(flags.end(), {"--state_dir", daemons_.folder() + "/state"});
  StartServers(job, flags);
  ASSERT_FALSE(HasFatalFailure());
  for (uint32_t w = 0; w < kWorkers; ++w) {
    flags = limits;
    flags.insert(flags.end(),
                 {"--worker", absl::StrCat(w), "--addresses", absl::StrJoin(addresses_, ",")});
    daemons_.StartWorker(absl::StrCat("worker", w), job, flags);
  }
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsStep(3)).has_value());
  const ProcessResult saved = daemons_.Run(
      "cli/thinwire", {"checkpoint", "now", "--addresses", absl::StrJoin(addresses_, ",")});
  EXPECT_EQ(saved.exit, ExitStatus()) << saved.log << saved.output;
  for (const StatusReply& server : Statuses()) {
    EXPECT_EQ(server.lease_expirations(), 0u);
    EXPECT_GT(server.checkpoints(), 0u);
  }
  daemons_.Signal("worker1", SIGTERM);
  EXPECT_EQ(daemons_.WaitForEnd("worker1").exit.code, 75);
  // The other worker goes on alone.
  ASSERT_TRUE(daemons_.WaitForEvent("worker0", IsStep(6)).has_value());
  for (const StatusReply& server : Statuses()) EXPECT_EQ(server.lease_expirations(), 0u);
  daemons_.Signal("server0", SIGTERM);
  EXPECT_EQ(daemons_.WaitForEnd("server0").exit, ExitStatus());
}

TEST_F(BandwidthTest, AWrongRateIsAnErrorOfTheConfiguration) {
  const std::string job = daemons_.Write("wrong.textproto", TrainJob(1));
  const auto expect_error = [&](const std::string& program, std::vector<std::string> arguments) {
    const ProcessResult run = daemons_.Run(program, std::move(arguments));
    EXPECT_EQ(run.exit.code, 78) << program << run.log;
    EXPECT_THAT(run.log,
                testing::HasSubstr("--uplink: wrong value (expected a rate from 100kbit to "
                                   "1000gbit, such as 20mbit, got 20mb)"));
  };
  expect_error("cli/thinwire", {"train", "--config", job, "--uplink", "20mb"});
  expect_error("server/server", {"--config", job, "--server", "1", "--uplink", "20mb"});
  expect_error("worker/worker",
               {"--config", job, "--addresses", "127.0.0.1:1,127.0.0.1:2", "--uplink", "20mb"});
}

}  // namespace
}  // namespace thinwire
