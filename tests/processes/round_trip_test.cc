// Counts the round trips of a step, of the start and of the end of a worker over connections with
// latency. A step needs one: the push is also the read for the next step. Flow-control windows below
// the size of a step add round trips. Also tests that servers at such a distance find each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/options/client_options.h"
#include "client/transport/grpc_transport.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/model/partition.h"
#include "common/time/thread_executor.h"
#include "config/job_text.h"
#include "tests/processes/daemons.h"
#include "tests/fault_proxy/proxy_thread.h"

namespace thinwire {
namespace {

// Much longer than the computing of a step, also on a busy machine.
constexpr absl::Duration kLatency = absl::Milliseconds(200);
constexpr int kSteps = 4;
// 4 MiB in fp32, in four shards of 1 MiB.
const std::vector<TensorShape> kModel = {{"w", {1024, 1024}}};
constexpr char kJob[] =
    "name: \"distance\" consistency { mode: sync workers: 1 } "
    "compression { push: fp32 pull: fp32 }";

// Trains kSteps steps and returns the round trips of the fastest one: its duration divided by two
// latencies, rounded down.
absl::StatusOr<int64_t> RoundTripsOfAStep(const std::string& address, const JobConfig& config) {
  GrpcTransport transport({address});
  ClientOptions options;
  options.job = "distance";
  options.config = config;
  Threads threads;
  ASSIGN_OR_RETURN(const auto client, Client::Make(options, kModel, transport, threads));
  const auto ones = std::make_shared<const std::vector<float>>(kModel[0].value_count(), 1.0f);
  const std::vector<std::span<const float>> initial = {*ones};
  ASSIGN_OR_RETURN(Step step, client->Join(initial));
  RETURN_IF_ERROR(client->WaitAll());
  absl::Duration fastest = absl::InfiniteDuration();
  for (int i = 0; i < kSteps; ++i) {
    const absl::Time begin = absl::Now();
    client->BeginStep(step, 1);
    client->Ready(0, *ones, ones);
    RETURN_IF_ERROR(client->EndStep());
    ASSIGN_OR_RETURN(step, client->NextStep());
    RETURN_IF_ERROR(client->WaitAll());
    fastest = std::min(fastest, absl::Now() - begin);
  }
  RETURN_IF_ERROR(client->Leave());
  return fastest / (2 * kLatency);
}

struct StartAndEnd {
  double start;  // until the parameters of the first step have arrived
  double end;    // from the last verdict until the final parameters have arrived
};

// Joins a new job, makes a step and leaves. Returns the round trips of the start and of the end. The
// model is small, so that its bytes need no round trips of their own. A new connection counts as half
// a round trip, because the proxy accepts it; without a proxy it takes two.
absl::StatusOr<StartAndEnd> RoundTripsOfStartAndEnd(const std::vector<std::string>& addresses,
                                                    const JobConfig& config) {
  const std::vector<TensorShape> model = {{"w", {64, 256}}};
  const absl::Time begin = absl::Now();
  GrpcTransport transport(addresses);
  ClientOptions options;
  options.job = "distance";
  options.server_count = static_cast<uint32_t>(addresses.size());
  options.config = config;
  Threads threads;
  ASSIGN_OR_RETURN(const auto client, Client::Make(options, model, transport, threads));
  const auto ones = std::make_shared<const std::vector<float>>(model[0].value_count(), 1.0f);
  const std::vector<std::span<const float>> initial = {*ones};
  ASSIGN_OR_RETURN(const Step step, client->Join(initial));
  RETURN_IF_ERROR(client->WaitAll());
  const absl::Time ready = absl::Now();
  client->BeginStep(step, 1);
  client->Ready(0, *ones, ones);
  RETURN_IF_ERROR(client->EndStep());
  RETURN_IF_ERROR(client->NextStep().status());
  const absl::Time judged = absl::Now();
  ASSIGN_OR_RETURN(const WorkerId evaluator, client->members().Evaluator());
  if (evaluator != options.worker) return absl::InternalError("worker 0 is not the evaluator");
  RETURN_IF_ERROR(client->Leave({.finished = true}));
  RETURN_IF_ERROR(client->masters().Read().status());
  const absl::Duration round_trip = 2 * kLatency;
  return StartAndEnd{.start = absl::FDivDuration(ready - begin, round_trip),
                     .end = absl::FDivDuration(absl::Now() - judged, round_trip)};
}

class RoundTripTest : public testing::Test {
 protected:
  absl::StatusOr<int64_t> RoundTripsWithBudget(const std::string& budget) {
    const std::string address = daemons_.StartServer("server", kJob, {"--memory_budget", budget});
    RETURN_IF_ERROR(StartProxy(address));
    ASSIGN_OR_RETURN(const JobText job, ParseJobText(kJob, "job"));
    return RoundTripsOfAStep(proxy_->address(), job.config);
  }

  absl::Status StartProxy(const std::string& target) {
    ProxyOptions options{.target = target};
    options.faults.latency = kLatency;
    ASSIGN_OR_RETURN(proxy_, ProxyThread::Start(options));
    return absl::OkStatus();
  }

  Daemons daemons_;
  std::unique_ptr<ProxyThread> proxy_;
};

TEST_F(RoundTripTest, AStepTakesOneRoundTrip) {
  const auto round_trips = RoundTripsWithBudget("1GB");
  ASSERT_TRUE(round_trips.ok()) << round_trips.status();
  EXPECT_EQ(*round_trips, 1);
}

// Shows that this test sees the waits for windows. docs/failures.md states the necessary budget.
TEST_F(RoundTripTest, AStepWithTheWindowsOfASmallMemoryBudgetTakesMore) {
  const auto round_trips = RoundTripsWithBudget("128MB");
  ASSERT_TRUE(round_trips.ok()) << round_trips.status();
  EXPECT_GT(*round_trips, 1);
}

// With calls of one server after another, three servers took 7.2 and 6.3.
TEST_F(RoundTripTest, TheStartAndTheEndTakeAFewRoundTripsForAllServers) {
  const std::string text =
      "name: \"distance\" servers: 3 consistency { mode: sync workers: 1 } "
      "compression { push: fp32 pull: fp32 }";
  std::vector<std::string> servers(3, "127.0.0.1:0");
  std::vector<std::unique_ptr<ProxyThread>> proxies(3);
  std::vector<std::string> addresses(3);
  for (uint32_t s = 3; s-- > 0;) {
    daemons_.StartServer(s, text, servers);
    ProxyOptions options{.target = servers[s]};
    options.faults.latency = kLatency;
    auto proxy = ProxyThread::Start(options);
    ASSERT_TRUE(proxy.ok()) << proxy.status();
    proxies[s] = *std::move(proxy);
    addresses[s] = proxies[s]->address();
  }
  const auto job = ParseJobText(text, "job");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto round_trips = RoundTripsOfStartAndEnd(addresses, job->config);
  ASSERT_TRUE(round_trips.ok()) << round_trips.status();
  EXPECT_LT(round_trips->start, 6);
  EXPECT_LT(round_trips->end, 5);
}

// The lead must reach server 1 before a worker can join.
TEST_F(RoundTripTest, ServersAtADistanceBeginAJob) {
  const std::string job =
      "name: \"distance\" servers: 2 consistency { workers: 1 } "
      "task { model: softmax train_examples: 100 test_examples: 100 batch_size: 50 epochs: 1 }";
  const std::string near = daemons_.StartServer("server1", job, {"--server", "1"});
  ASSERT_EQ(StartProxy(near), absl::OkStatus());
  // The first bytes of an HTTP/2 connection arrive after one latency, because the proxy itself
  // accepts the connection.
  ASSERT_EQ(proxy_->Command("latency 400ms"), absl::OkStatus());
  const std::string far = absl::StrCat("127.0.0.1:1,", proxy_->address());
  const std::string lead =
      daemons_.StartServer("server0", job, {"--server", "0", "--addresses", far});
  daemons_.StartWorker(
      "worker", job, {"--worker", "0", "--addresses", absl::StrCat(lead, ",", proxy_->address())});
  EXPECT_EQ(daemons_.WaitForEnd("worker").exit, ExitStatus());
}

}  // namespace
}  // namespace thinwire
