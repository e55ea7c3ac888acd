// Measures the time from a restarted server's listening to the end of a worker's step, over gRPC,
// after outages of different lengths. The test prints the times and does not check them.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/options/client_options.h"
#include "client/testing/fake_server.h"
#include "client/testing/grpc_test_server.h"
#include "client/transport/grpc_transport.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/time/thread_executor.h"

namespace thinwire {
namespace {

TEST(RejoinSpeedTest, StepsGoOnAfterTheServerListensAgain) {
  const std::vector<TensorShape> tensors = {{"w", {64, 4096}}};
  const Partition partition = *Partition::Make(tensors, 0, 1);
  FakeServer server(partition, ServerId{0});
  auto listening = std::make_unique<GrpcTestServer>(server);
  const int port = listening->port();
  ASSERT_NE(port, 0);
  GrpcTransport transport({absl::StrCat("127.0.0.1:", port)});
  ClientOptions options;
  options.server_return = absl::Minutes(10);
  Threads threads;
  const auto client = *Client::Make(options, tensors, transport, threads);
  const std::vector<float> values(partition.value_count(), 1);
  const std::vector<std::span<const float>> initial = {values};
  Step step = *client->Join(initial);

  uint64_t restart_count = 0;
  for (const absl::Duration away :
       {absl::Milliseconds(100), absl::Milliseconds(700), absl::Milliseconds(1300),
        absl::Seconds(3), absl::Seconds(10)}) {
    ASSERT_TRUE(client->WaitAll().ok());
    listening.reset();
    server.Restart(/*keep_state=*/true);
    absl::Time listens;
    std::thread restarter([&] {
      absl::SleepFor(away);  // the outage that is measured
      listening = std::make_unique<GrpcTestServer>(server, port);
      listens = threads.Now();
    });
    client->BeginStep(step, 1);
    client->Ready(0, values);
    EXPECT_TRUE(client->EndStep().ok());
    const absl::StatusOr<Step> next = client->NextStep();
    const absl::Status read = client->WaitAll();
    const absl::Time end = threads.Now();
    restarter.join();
    ASSERT_EQ(listening->port(), port) << "the port is in use";
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(*next, step + 1);
    EXPECT_TRUE(read.ok()) << read;
    step = *next;
    EXPECT_EQ(client->counters().rejoins(), ++restart_count);
    std::printf("server away for %4.1f s: next step %.2f s after it listens\n",
                absl::ToDoubleSeconds(away), absl::ToDoubleSeconds(end - listens));
  }
  EXPECT_EQ(client->counters().accepted_pushes(), restart_count * partition.shard_count());
  EXPECT_TRUE(client->Leave().ok());
}

}  // namespace
}  // namespace thinwire
