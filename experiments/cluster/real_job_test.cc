// A run in virtual time has the same parameters, bit for bit, as real servers and clients with the
// same gradients.
#include <gtest/gtest.h>

#include <cmath>
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
#include "client/encode/streaming_steps.h"
#include "client/options/job_client_options.h"
#include "client/testing/in_process_transport.h"
#include "common/files/crc32c.h"
#include "common/time/clock.h"
#include "common/time/thread_executor.h"
#include "experiments/cluster/run.h"
#include "experiments/cluster/testing/quadratic_task.h"
#include "server/job/job.h"
#include "server/job/job_threads.h"
#include "server/job/make_job.h"
#include "server/job/testing/direct_peers.h"
#include "tests/clusters/job_server.h"

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
      settings.epoch = Epoch{100 + s};
      jobs_.push_back(
          MakeJob(spec, settings, clock_, threads_.executors(), std::move(peers)).value());
    }
  }

  Job& job(uint32_t server) { return *jobs_[server]; }
  // Returns the bytes of the masters by the names of the tensors.
  std::map<std::string, std::string> Masters() {
    std::map<std::string, std::map<uint64_t, std::string>> tensors;
    for (const auto& job : jobs_) {
      bool more = true;
      for (size_t place = 0; more; ++place) {
        absl::Notification told;
        job->Masters({}, place, [&](absl::StatusOr<std::vector<MastersChunk>> reply) {
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
    std::map<std::string, std::string> masters;
    for (const auto& [name, chunks] : tensors) {
      for (const auto& [offset, bytes] : chunks) masters[name] += bytes;
    }
    return masters;
  }

 private:
  ManualClock clock_;
  JobThreads threads_{2};
  std::vector<std::unique_ptr<Job>> jobs_;
};

// Takes the local steps of STEP as worker/trainer/step_runner.cc does, and pushes its fragments.
void Stream(const LocalStepsSpec& spec, LearningTask& task, WorkerId worker, Step step,
            Client& client, std::span<const std::span<float>> replica,
            std::span<const std::span<float>> gradient, client::LocalSteps& local,
            client::StreamingSteps& streaming) {
  const StepShape shape = task.ShapeOf(worker, step);
  streaming.Follow(step, replica);
  client.BeginStep(step, shape.examples);
  uint32_t done = 0;
  for (const client::FragmentMove& move :
       client::MovesOfStep(spec, shape.local_steps, shape.ends_epoch)) {
    for (; done < move.local_steps; ++done) {
      EXPECT_TRUE(task.Gradient(worker, step, done, streaming.parameters(), gradient).ok());
      local.Apply(streaming.parameters(), gradient);
    }
    const std::vector<ShardId>& shards = client.fragments().shards()[move.fragment];
    if (move.mixes) {
      EXPECT_TRUE(client.fragments().Wait(move.fragment).ok());
      streaming.Mix(shards, replica, move.own);
    } else {
      streaming.Take(shards);
      client.fragments().Ready(move.fragment, streaming.differences());
    }
  }
  streaming.Finish(step + 1);
}

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
  Threads threads;
  const auto client = Client::Make(options, task.tensors(), transport, threads).value();
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
  client::StreamingSteps streaming(client->partition());
  Step step = client->Join(initial).value();
  while (step.value < task.steps()) {
    ASSERT_TRUE(client->WaitAll().ok());
    if (spec.task.local.streaming()) {
      Stream(spec.task.local, task, worker, step, *client, parameters, gradient, local, streaming);
      ASSERT_TRUE(client->EndStep().ok());
      step = client->NextStep().value();
      continue;
    }
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

// Returns the masters after all workers have trained.
std::map<std::string, std::string> RealMasters(const JobSpec& spec) {
  Servers servers(spec);
  std::vector<std::thread> workers;
  for (uint32_t w = 0; w < spec.rule.workers; ++w) {
    workers.emplace_back([&, w] { Train(spec, servers, WorkerId{w}); });
  }
  for (std::thread& worker : workers) worker.join();
  return servers.Masters();
}

// Returns the CRC-32C of the masters, the tensors in the order of their names.
uint32_t RealCrc(const JobSpec& spec) {
  uint32_t crc = 0;
  for (const auto& [name, bytes] : RealMasters(spec)) {
    crc = Crc32c(std::as_bytes(std::span(bytes)), crc);
  }
  return crc;
}

std::vector<float> Floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
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

// The limit is below the norm of some steps only.
TEST(RealJobTest, ClippingOfTheAveragedGradient) {
  JobSpec spec = Ordered();
  spec.optimizer.kind = OptimizerKind::kMomentum;
  const uint32_t unclipped = RealCrc(spec);
  spec.clip_norm = 1e30;
  EXPECT_EQ(RealCrc(spec), unclipped) << "no gradient is that large";
  EXPECT_EQ(VirtualCrc(spec), unclipped);
  spec.clip_norm = 150;
  const uint32_t real = RealCrc(spec);
  EXPECT_NE(real, unclipped);
  EXPECT_EQ(VirtualCrc(spec), real);
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

TEST(RealJobTest, StreamingLocalStepsInFp8) {
  JobSpec spec = Ordered();
  spec.optimizer.kind = OptimizerKind::kNesterov;
  spec.schedule.learning_rate = 0.7;
  spec.push.codec = {.id = CodecId::kFp8E5m2};
  spec.publish = PublishOptions{.codec = CodecSpec{.id = CodecId::kFp8E5m2}};
  spec.task.local = {.count = 6, .learning_rate = 0.05, .fragments = 2, .overlap = 1};
  const uint32_t real = RealCrc(spec);
  EXPECT_EQ(VirtualCrc(spec), real);
  spec.task.local.overlap = 2;
  EXPECT_NE(VirtualCrc(spec), real);
  spec.task.local.overlap = 0;
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

double Norm(std::span<const double> values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

// LARS and LAMB in double over a whole tensor, from the formulas of the papers.
struct PlainTensor {
  std::vector<double> x, m, v;

  void Lars(const OptimizerSpec& spec, double rate, const std::vector<double>& g) {
    const double trust = spec.trust_coefficient * Norm(x) / (Norm(g) + spec.weight_decay * Norm(x));
    for (size_t i = 0; i < x.size(); ++i) {
      m[i] = spec.momentum * m[i] + rate * trust * (g[i] + spec.weight_decay * x[i]);
      x[i] -= m[i];
    }
  }
  void Lamb(const OptimizerSpec& spec, double rate, const std::vector<double>& g, int t) {
    std::vector<double> r(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      m[i] = spec.beta1 * m[i] + (1 - spec.beta1) * g[i];
      v[i] = spec.beta2 * v[i] + (1 - spec.beta2) * g[i] * g[i];
      r[i] = m[i] / (1 - std::pow(spec.beta1, t)) /
                 (std::sqrt(v[i] / (1 - std::pow(spec.beta2, t))) + spec.epsilon) +
             spec.weight_decay * x[i];
    }
    const double ratio = Norm(x) / Norm(r);
    for (size_t i = 0; i < x.size(); ++i) x[i] -= rate * ratio * r[i];
  }
};

// Trains with all workers' gradients in double. Returns the parameters of each tensor.
std::map<std::string, std::vector<double>> PlainTraining(const JobSpec& spec) {
  const QuadraticPlan plan = PlanOf(spec);
  QuadraticTask task(plan);
  std::vector<PlainTensor> tensors;
  for (uint32_t t = 0; t < task.tensors().size(); ++t) {
    const size_t count = task.initial(t).size();
    tensors.push_back({.x = {task.initial(t).begin(), task.initial(t).end()},
                       .m = std::vector<double>(count),
                       .v = std::vector<double>(count)});
  }
  for (uint64_t step = 0; step < plan.steps; ++step) {
    std::vector<std::vector<float>> parameters, gradient;
    for (const PlainTensor& tensor : tensors) {
      parameters.emplace_back(tensor.x.begin(), tensor.x.end());
      gradient.emplace_back(tensor.x.size());
    }
    const std::vector<std::span<float>> read(parameters.begin(), parameters.end());
    const std::vector<std::span<float>> written(gradient.begin(), gradient.end());
    std::vector<std::vector<double>> mean;
    for (const PlainTensor& tensor : tensors) mean.emplace_back(tensor.x.size());
    double examples = 0;
    for (uint32_t w = 0; w < plan.workers; ++w) {
      const uint32_t count =
          task.Gradient(WorkerId{w}, Step{step}, 0, read, written).value().examples;
      examples += count;
      for (size_t t = 0; t < mean.size(); ++t) {
        for (size_t i = 0; i < mean[t].size(); ++i) mean[t][i] += count * gradient[t][i];
      }
    }
    for (size_t t = 0; t < mean.size(); ++t) {
      for (double& value : mean[t]) value /= examples;
      const double rate = spec.schedule.learning_rate;
      if (spec.optimizer.kind == OptimizerKind::kLars) {
        tensors[t].Lars(spec.optimizer, rate, mean[t]);
      } else {
        tensors[t].Lamb(spec.optimizer, rate, mean[t], static_cast<int>(step) + 1);
      }
    }
  }
  std::map<std::string, std::vector<double>> trained;
  for (size_t t = 0; t < tensors.size(); ++t) trained[task.tensors()[t].name] = tensors[t].x;
  return trained;
}

// Two servers divide the model, whose largest tensor has more values than the shard size.
TEST(RealJobTest, LarsAndLambEqualPlainTrainingOverWholeTensors) {
  for (const OptimizerKind kind : {OptimizerKind::kLars, OptimizerKind::kLamb}) {
    JobSpec spec = Ordered();
    spec.optimizer = {.kind = kind, .weight_decay = 0.01, .trust_coefficient = 0.02};
    const auto masters = RealMasters(spec);
    size_t compared_count = 0;
    for (const auto& [name, expected] : PlainTraining(spec)) {
      const std::vector<float> got = Floats(masters.at(name));
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i, ++compared_count) {
        ASSERT_NEAR(got[i], expected[i], 1e-3) << name << "[" << i << "] with " << kind;
      }
    }
    EXPECT_EQ(compared_count, 12940u);
    EXPECT_EQ(VirtualCrc(spec), RealCrc(spec));
  }
}

TEST(RealJobTest, ARateFactorOf0FreezesExactlyTheTensorsOfItsGroup) {
  JobSpec spec = Ordered();
  spec.groups = {{.match = "*2", .learning_rate_factor = 0, .optimizer = {.weight_decay = 0.5}},
                 {.match = "b*",
                  .optimizer = {.kind = OptimizerKind::kLamb},
                  .push = CodecSpec{.id = CodecId::kBf16}}};
  const auto masters = RealMasters(spec);
  const QuadraticTask task(PlanOf(spec));
  ASSERT_EQ(masters.size(), 4u);
  for (uint32_t t = 0; t < task.tensors().size(); ++t) {
    const std::string& name = task.tensors()[t].name;
    const std::vector<float> initial(task.initial(t).begin(), task.initial(t).end());
    EXPECT_EQ(Floats(masters.at(name)) == initial, name.ends_with('2')) << name;
  }
  EXPECT_EQ(VirtualCrc(spec), RealCrc(spec));
}

}  // namespace
}  // namespace thinwire::lab
