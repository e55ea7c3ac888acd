#include "tests/clusters/small_cluster.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "absl/synchronization/notification.h"
#include "client/encode/residual_file.h"
#include "client/encode/worker_folder.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/job/testing/direct_peers.h"
#include "server/protocols/peers.h"

namespace thinwire {
namespace {

// Returns the model's tensors. VALUE(i) is element i of each tensor.
Tensors Fill(const std::function<float(size_t)>& value) {
  Tensors tensors;
  for (const TensorShape& t : SmallModel()) {
    std::vector<float>& values = tensors.emplace_back(t.value_count());
    for (size_t i = 0; i < values.size(); ++i) values[i] = value(i);
  }
  return tensors;
}

// Copies CHUNK to its position in TENSORS.
void CopyChunk(const MastersChunk& chunk, Tensors& tensors) {
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (SmallModel()[t].name != chunk.tensor()) continue;
    memcpy(tensors[t].data() + chunk.offset(), chunk.values().data(), chunk.values().size());
  }
}

}  // namespace

std::vector<TensorShape> SmallModel() {
  return {{"w1", {100, 80}}, {"b1", {80}}, {"w2", {80, 60}}, {"b2", {60}}};
}

ClientOptions OptionsOfKilledWorker(const std::string& state_dir) {
  ClientOptions options;
  options.server_count = kServers;
  options.shard_size = kLeastShardSize;
  options.push = {.id = CodecId::kTopK, .density = 0.02};
  options.state_dir = state_dir;
  options.lease = absl::Seconds(1);
  return options;
}

Tensors InitialValues() {
  return Fill([](size_t i) { return 0.25f * static_cast<float>(i % 13); });
}

Tensors Zeros() {
  return Fill([](size_t) { return 0.0f; });
}

Tensors Gradient(uint32_t worker, uint64_t step) {
  return Fill([=](size_t i) {
    return 0.125f * static_cast<float>((i * 7 + worker * 3 + step) % 32) - 2.0f;
  });
}

void Subtract(Tensors& tensors, float scale, const Tensors& values) {
  for (size_t t = 0; t < tensors.size(); ++t) {
    for (size_t i = 0; i < tensors[t].size(); ++i) tensors[t][i] -= scale * values[t][i];
  }
}

Tensors ReadResidualTensors(const std::string& state_dir, WorkerId worker,
                            const Partition& partition) {
  Tensors tensors = Zeros();
  const auto folder = client::WorkerFolder::Open(state_dir, worker);
  const std::string path = folder->PathOf(folder->Steps()->back());
  const auto saved =
      client::ReadResiduals(path, {.job = ClientOptions().job, .worker = worker}, partition);
  EXPECT_TRUE(saved.ok()) << saved.status();
  if (!saved.ok()) return tensors;
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const std::vector<float>& residual = saved->shards[s].residual;
    if (residual.empty()) continue;  // an empty residual means that all values are 0
    size_t next = 0;
    for (const Segment& segment : partition.segments(ShardId{s})) {
      for (uint64_t i = 0; i < segment.count; ++i) {
        tensors[segment.tensor][segment.offset + i] = residual[next++];
      }
    }
  }
  return tensors;
}

SmallCluster::SmallCluster(const Rule& rule, std::optional<PublishOptions> publish,
                           const SparseUpdateSpec& sparse_updates, RunId run,
                           std::optional<GrowthSpec> growth) {
  for (uint32_t s = 0; s < kServers; ++s) {
    JobOptions options;
    options.server = ServerId{s};
    options.server_count = kServers;
    options.rule = rule;
    options.publish = publish;
    options.sparse_updates = sparse_updates;
    options.lease = kLease;
    options.epoch = Epoch{100 + s};
    options.run = run;
    options.growth = growth;
    std::unique_ptr<Peers> peers;
    if (s == 0) {
      peers = std::make_unique<DirectPeers>([this](ServerId server) { return &job(server.value); });
    }
    options.group_updates = {{*MakeOptimizer({}), *Schedule::Make({.learning_rate = kRate})}};
    jobs_.push_back(std::make_unique<Job>(options, clock_, threads_.executors(), std::move(peers)));
  }
}

uint64_t SmallCluster::SeedBytes() {
  uint64_t bytes = 0;
  for (const auto& job : jobs_) {
    absl::Notification told;
    job->Call(StatusRequest(), [&](absl::StatusOr<StatusReply> reply) {
      bytes += reply->seed_payload_bytes();
      told.Notify();
    });
    told.WaitForNotification();
  }
  return bytes;
}

Tensors SmallCluster::Masters() {
  Tensors tensors = InitialValues();
  for (const auto& job : jobs_) {
    bool more = true;
    for (size_t place = 0; more; ++place) {
      absl::Notification told;
      job->Masters({}, place, [&](absl::StatusOr<std::vector<MastersChunk>> reply) {
        EXPECT_TRUE(reply.ok()) << reply.status();
        more = reply.ok() && !reply->empty();
        if (reply.ok()) {
          for (const MastersChunk& chunk : *reply) CopyChunk(chunk, tensors);
        }
        told.Notify();
      });
      told.WaitForNotification();
    }
  }
  return tensors;
}

void SmallCluster::AwaitHeard(uint32_t worker) {
  for (const auto& job : jobs_) {
    for (bool heard = false; !heard;) {
      absl::Notification told;
      job->Call(StatusRequest(), [&](absl::StatusOr<StatusReply> reply) {
        for (const WorkerStatus& status : reply->workers()) {
          heard = heard || (status.worker() == worker && status.heard_seconds_ago() == 0);
        }
        told.Notify();
      });
      told.WaitForNotification();
    }
  }
}

void SmallCluster::Tick() {
  for (const auto& job : jobs_) {
    absl::Notification ticked;
    job->Tick([&] { ticked.Notify(); });
    ticked.WaitForNotification();
  }
}

SmallWorker::SmallWorker(SmallCluster& cluster, uint32_t number, ClientOptions options,
                         const Device* device)
    : number_(number) {
  std::vector<InProcessServer*> servers;
  for (uint32_t s = 0; s < kServers; ++s) {
    servers_.push_back(std::make_unique<JobServer>(cluster.job(s)));
    servers.push_back(servers_.back().get());
  }
  transport_ = std::make_unique<InProcessTransport>(std::move(servers));
  options.worker = WorkerId{number};
  options.server_count = kServers;
  options.shard_size = kLeastShardSize;
  options.silence = absl::Minutes(2);
  options.heartbeat_interval = absl::Milliseconds(20);
  client_ = *Client::Make(options, SmallModel(), *transport_, threads_, device);
}

Step SmallWorker::Join() {
  const Tensors initial = InitialValues();
  const std::vector<std::span<const float>> spans(initial.begin(), initial.end());
  const absl::StatusOr<Step> step = client_->Join(spans);
  EXPECT_TRUE(step.ok()) << step.status();
  return *step;
}

void SmallWorker::Push(Step step, const Tensors& gradient) {
  client_->BeginStep(step, kExamples);
  EXPECT_TRUE(client_->WaitAll().ok());
  for (uint32_t t = gradient.size(); t-- > 0;) client_->Ready(t, gradient[t]);
  EXPECT_TRUE(client_->EndStep().ok());
}

Step SmallWorker::Next() {
  const absl::StatusOr<Step> next = client_->NextStep();
  EXPECT_TRUE(next.ok()) << next.status();
  return *next;
}

void SmallWorker::Train(Step last, bool faults) {
  Step step = Join();
  while (step < last) {
    const ServerId server{static_cast<uint32_t>((step.value + number_) % kServers)};
    if (faults && step.value % 2 == 0) transport_->LoseReplies(server, 1);
    if (faults) transport_->RepeatFrames(server, 2);
    Push(step, Gradient(number_, step.value));
    if (faults && step.value % 3 == 0) transport_->DropStreams(server);
    step = Next();
  }
}

Tensors SmallWorker::Parameters() {
  EXPECT_TRUE(client_->WaitAll().ok());
  Tensors parameters;
  for (uint32_t t = 0; t < SmallModel().size(); ++t) {
    const std::span<float> values = client_->replica(t);
    parameters.emplace_back(values.begin(), values.end());
  }
  return parameters;
}

}  // namespace thinwire
