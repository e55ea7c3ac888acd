// A run in virtual time has the same parameters, bit for bit, as real servers and clients with the
// same gradients.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/client.h"
#include "client/encode/local_steps.h"
#include "client/transport/in_process_transport.h"
#include "common/files/crc32c.h"
#include "common/time/clock.h"
#include "experiments/cluster/run.h"
#include "experiments/cluster/testing/quadratic_task.h"
#include "server/edge/direct_peers.h"
#include "server/edge/job.h"
#include "server/edge/make_job.h"
#include "tests/job_server.h"
#include "worker/client_options.h"

namespace thinwire::lab {
namespace {

// Returns the plan of a task with the local steps of SPEC.
QuadraticPlan PlanOf(const JobSpec& spec) {
  return {.workers = 3, .steps = 20, .local_steps = spec.task.local.count, .uneven = true};
}

// The servers of a job in this process.
class Servers {
 public:
  explicit Servers(const JobSpec& spec) {
    for (uint32_t s = 0; s < spec.server_count; ++s) {
      std::unique_ptr<Peers> peers;
      if (s == 0) {
        peers =
            std::make_unique<DirectPeers>([this](ServerId id) { return jobs_[id.value].get(); });
      }
      ServerSettings settings;
      settings.server = ServerId{s};
      settings.thread_count = 2;
      settings.epoch = Epoch{100 + s};
      jobs_.push_back(MakeJob(spec, settings, clock_, std::move(peers)).value());
    }
  }

  Job& job(uint32_t server) { return *jobs_[server]; }
  // Returns the CRC-32C of the masters, the tensors in the order of their names.
  uint32_t Crc() {
    std::map<std::string, std::map<uint64_t, std::string>> tensors;
    for (const auto& job : jobs_) {
      bool more = true;
      for (size_t place = 0; more; ++place) {
        absl::Notification told;
        job->Masters(place, [&](absl::StatusOr<std::vector<MastersChunk>> reply) {
          EXPECT_TRUE(reply.ok()) << reply.status();
          more = reply.ok() && !reply->empty();
          for (size_t i = 0; more && i < reply->size(); ++i) {
            tensors[(*reply)[i].tensor()][(*reply)[i].offset()] = (*reply)[i].values();
          }
          told.Notify();
        });
        told.WaitForNotification();
      }
    }
    uint32_t crc = 0;
    for (const auto& [name, chunks] : tensors) {
      for (const auto& [offset, bytes] : chunks) crc = Crc32c(std::as_bytes(std::span(bytes)), crc);
    }
    return crc;
  }

 private:
  ManualClock clock_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

// Trains as a real worker with a real client.
void Train(const JobSpec& spec, Servers& servers, WorkerId worker) {
  QuadraticTask task(PlanOf(spec));
  std::vector<std::unique_ptr<JobServer>> links;
  std::vector<InProcessServer*> addresses;
  for (uint32_t s = 0; s < spec.server_count; ++s) {
    links.push_back(std::make_unique<JobServer>(servers.job(s)));
    addresses.push_back(links.back().get());
  }
  InProcessTransport transport(std::move(addresses));
  ClientOptions options = MakeClientOptions(
      spec, {.worker = worker, .planned_examples = task.examples(), .planned_steps = task.steps()});
  options.silence = absl::Minutes(2);
  const auto client = Client::Make(options, task.tensors(), transport).value();
  std::vector<std::span<const float>> initial;
  std::vector<std::span<float>> parameters, gradient;
  std::vector<std::vector<float>> memory;
  for (uint32_t i = 0; i < task.tensors().size(); ++i) {
    initial.push_back(task.initial(i));
    parameters.push_back(client->replica(i));
    memory.emplace_back(parameters[i].size());
  }
  gradient.assign(memory.begin(), memory.end());
  client::LocalSteps local(spec.task.local, task.tensors());
  Step step = client->Join(initial).value();
  while (step.value < task.steps()) {
    ASSERT_TRUE(client->WaitAll().ok());
    uint32_t examples = 0;
    local.Begin(parameters);
    for (uint32_t i = 0; i < spec.task.local.count; ++i) {
      const uint32_t count = task.Gradient(worker, step, i, parameters, gradient).value().examples;
      if (count > 0 && spec.task.local.enabled()) local.Apply(parameters, gradient);
      examples += count;
    }
    if (spec.task.local.enabled()) local.Finish(parameters, gradient);
    client->BeginStep(step, examples);
    for (uint32_t i = 0; i < gradient.size(); ++i) client->Ready(i, gradient[i]);
    ASSERT_TRUE(client->EndStep().ok());
    step = client->NextStep().value();
  }
  EXPECT_TRUE(client->Leave().ok());
}

uint32_t RealCrc(const JobSpec& spec) {
  Servers servers(spec);
  std::vector<std::thread> workers;
  for (uint32_t w = 0; w < spec.rule.workers; ++w) {
    workers.emplace_back([&, w] { Train(spec, servers, WorkerId{w}); });
  }
  for (std::thread& worker : workers) worker.join();
  return servers.Crc();
}

uint32_t VirtualCrc(const JobSpec& job) {
  RunSpec spec;
  spec.job = job;
  spec.machines.mutable_compute()->set_distribution(ComputeTime::Distribution::exponential);
  spec.machines.mutable_worker_link()->set_megabits_per_second(2);
  const auto result = RunParameterServer(spec, QuadraticTask::Maker(PlanOf(job)),
                                         {.threads = 2, .progress = nullptr});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->parameters_crc() : 0;
}

JobSpec Ordered() {
  JobSpec spec;
  spec.rule = Rule::Sync(3, /*ordered_fold=*/true);
  spec.server_count = 2;
  spec.shard_size = 4096;
  spec.schedule.learning_rate = 0.1;
  return spec;
}

TEST(RealJobTest, MomentumWithoutCompression) {
  JobSpec spec = Ordered();
  spec.optimizer.kind = OptimizerKind::kMomentum;
  spec.schedule.kind = ScheduleKind::kCosine;
  spec.schedule.warmup = 0.2;
  EXPECT_EQ(VirtualCrc(spec), RealCrc(spec));
}

TEST(RealJobTest, TheTestFindsADifference) {
  JobSpec spec = Ordered();
  const uint32_t real = RealCrc(spec);
  spec.schedule.learning_rate = 0.1001;
  EXPECT_NE(VirtualCrc(spec), real);
}

TEST(RealJobTest, Fp8InBothDirectionsWithClipping) {
  JobSpec spec = Ordered();
  spec.push.codec = {.id = CodecId::kFp8E5m2};
  spec.push.gradient_clip = 20;
  spec.pull_codec = CodecId::kBf16;
  EXPECT_EQ(VirtualCrc(spec), RealCrc(spec));
}

TEST(RealJobTest, TopKWithMomentumCorrectionWarmupAndDeltas) {
  JobSpec spec = Ordered();
  spec.push.codec = {.id = CodecId::kTopK, .density = 0.01};
  spec.push.correction.enabled = true;
  spec.push.warmup.density = {.part = 0.5, .first = 0.25};
  spec.sparse_updates.lazy_slots = true;
  spec.publish = PublishOptions();
  EXPECT_EQ(VirtualCrc(spec), RealCrc(spec));
}

// The replica receives changes of the parameters, so Finish must restore its bits.
TEST(RealJobTest, LocalStepsWithNesterovAndExactDeltas) {
  JobSpec spec = Ordered();
  spec.optimizer.kind = OptimizerKind::kNesterov;
  spec.schedule.learning_rate = 0.7;
  spec.publish = PublishOptions();
  spec.task.local = {.count = 4,
                     .optimizer = LocalOptimizerKind::kAdamW,
                     .learning_rate = 0.05,
                     .weight_decay = 0.01};
  const uint32_t real = RealCrc(spec);
  EXPECT_EQ(VirtualCrc(spec), real);
  spec.task.local.learning_rate = 0.0501;
  EXPECT_NE(VirtualCrc(spec), real);
}

TEST(RealJobTest, LocalStepsWithFp8Deltas) {
  JobSpec spec = Ordered();
  spec.schedule.learning_rate = 1;
  spec.push.codec = {.id = CodecId::kFp8E5m2};
  spec.publish = PublishOptions{.codec = CodecSpec{.id = CodecId::kFp8E5m2}};
  spec.task.local = {.count = 3, .optimizer = LocalOptimizerKind::kMomentum, .learning_rate = 0.05};
  EXPECT_EQ(VirtualCrc(spec), RealCrc(spec));
}

TEST(RealJobTest, GtopkReturnsUnselectedValuesToTheWorkers) {
  JobSpec spec = Ordered();
  spec.push.codec = {.id = CodecId::kTopK, .density = 0.02};
  spec.sparse_updates.selection_density = 0.02;
  spec.sparse_updates.unselected_owner = UnselectedOwner::kWorkers;
  spec.publish = PublishOptions();
  EXPECT_EQ(VirtualCrc(spec), RealCrc(spec));
}

}  // namespace
}  // namespace thinwire::lab
