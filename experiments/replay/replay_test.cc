// Records asynchronous runs of real servers and real clients, each in threads of its own, and
// replays them.
#include "experiments/replay/replay.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/client.h"
#include "client/encode/local_steps.h"
#include "client/options/job_client_options.h"
#include "client/testing/in_process_transport.h"
#include "common/codec/payload.h"
#include "common/files/crc32c.h"
#include "common/time/clock.h"
#include "common/time/thread_executor.h"
#include "config/job.h"
#include "experiments/replay/recording.h"
#include "kernels/mix_bits.h"
#include "server/durable/files.h"
#include "server/durable/state_folder.h"
#include "server/job/job_threads.h"
#include "server/job/make_job.h"
#include "server/job/testing/direct_peers.h"
#include "tests/clusters/job_server.h"

namespace thinwire::lab {
namespace {

constexpr uint32_t kWorkers = 3;
constexpr uint64_t kSteps = 25;
constexpr uint32_t kBatch = 4;

// Logistic regression of random examples. Its gradients depend on all bits of the parameters.
class LogisticTask final : public LearningTask {
 public:
  const std::vector<TensorShape>& tensors() const override { return tensors_; }
  std::span<const float> initial(uint32_t tensor) const override { return initial_[tensor]; }
  uint64_t steps() const override { return kSteps; }
  uint64_t examples() const override { return kSteps * kBatch * kWorkers; }

  absl::StatusOr<GradientResult> Gradient(WorkerId worker, Step step, uint32_t local_step,
                                          Tensors parameters, Tensors gradient) override {
    for (const std::span<float> tensor : gradient) std::ranges::fill(tensor, 0.0f);
    double loss = 0;
    for (uint32_t i = 0; i < kBatch; ++i) {
      uint64_t key =
          kernels::MixBits(((worker.value * kSteps + step.value) * kBatch + i) + 1000 * local_step);
      const double label = static_cast<double>(key & 1);
      std::vector<double> x;
      double logit = 0;
      for (const std::span<float> tensor : parameters) {
        for (const float value : tensor) {
          x.push_back(static_cast<double>(kernels::MixBits(++key) >> 40) * 0x1p-24 - 0.5 * label);
          logit += x.back() * value;
        }
      }
      const double chance = 1 / (1 + std::exp(-logit));
      loss -= std::log(label == 1 ? chance : 1 - chance);
      size_t next = 0;
      for (const std::span<float> tensor : gradient) {
        for (float& value : tensor) {
          value += static_cast<float>((chance - label) * x[next++] / kBatch);
        }
      }
    }
    return GradientResult{.loss_sum = loss, .examples = kBatch};
  }

  absl::StatusOr<TestScore> Test(Tensors parameters) override {
    double sum = 0;
    for (const std::span<float> tensor : parameters) {
      for (const float value : tensor) sum += std::abs(value);
    }
    return TestScore{.loss = sum, .accuracy = 0};
  }

 private:
  const std::vector<TensorShape> tensors_ = {{"w", {40, 30}}, {"b", {30}}, {"a", {30, 10}}};
  const std::vector<std::vector<float>> initial_ = {
      std::vector<float>(1200, 0.01f), std::vector<float>(30), std::vector<float>(300, -0.02f)};
};

absl::StatusOr<std::unique_ptr<LearningTask>> MakeTask() {
  return std::make_unique<LogisticTask>();
}

JobConfig ConfigOf(const std::string& change) {
  JobConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        servers: 2
        consistency { mode: async workers: 3 }
        optimization { optimizer: momentum learning_rate: 0.1 }
        recovery { durability: log keep_log: true checkpoint_seconds: 3600 }
        task {})pb",
      &config));
  JobConfig more;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(change, &more));
  config.MergeFrom(more);
  return config;
}

RunSpec SpecOf(const JobConfig& config) {
  RunSpec spec;
  spec.config = config;
  spec.job = CheckJob(config).value();
  spec.tests = 3;
  return spec;
}

// Two servers of a job with an event log in a folder of its own.
class RecordedRun {
 public:
  explicit RecordedRun(const JobConfig& config)
      : state_dir_(absl::StrCat(testing::TempDir(), "/",
                                testing::UnitTest::GetInstance()->current_test_info()->name())),
        config_(config),
        job_(CheckJob(config).value()) {
    for (uint32_t s = 0; s < job_.server_count; ++s) {
      folders_.push_back(OpenStateFolder(files_, state_dir_, ServerId{s}).value());
      std::unique_ptr<Peers> peers;
      if (s == 0) {
        peers =
            std::make_unique<DirectPeers>([this](ServerId id) { return jobs_[id.value].get(); });
      }
      ServerSettings settings = {.server = ServerId{s}, .epoch = Epoch{1 + s}};
      settings.config = config;
      settings.durable = DurableOptions{.files = &files_, .folder = folders_.back().path};
      jobs_.push_back(
          MakeJob(job_, std::move(settings), clock_, threads_.executors(), std::move(peers))
              .value());
    }
  }

  // Trains with clients in threads of their own and stops the servers.
  void Train() {
    std::vector<std::thread> threads;
    for (uint32_t w = 0; w < kWorkers; ++w) {
      threads.emplace_back([this, w] { TrainWorker(w); });
    }
    for (std::thread& thread : threads) thread.join();
    crc_ = ReadCrc();
    jobs_.clear();
    folders_.clear();
  }

  // Returns the checksum of the servers' final parameters, as `thinwire train` reports it.
  uint32_t crc() const { return crc_; }
  absl::StatusOr<Recording> Read() { return ReadRecording(files_, state_dir_); }

 private:
  void TrainWorker(uint32_t number) {
    std::vector<std::unique_ptr<JobServer>> servers;
    std::vector<InProcessServer*> addresses;
    for (const auto& job : jobs_) {
      servers.push_back(std::make_unique<JobServer>(*job));
      addresses.push_back(servers.back().get());
    }
    InProcessTransport transport(addresses);
    LogisticTask task;
    ClientOptions options = MakeClientOptions(job_, {.worker = WorkerId{number},
                                                     .planned_examples = task.examples(),
                                                     .planned_steps = kSteps,
                                                     .state_dir = ""});
    options.config = config_;
    Threads threads;
    auto client = Client::Make(options, task.tensors(), transport, threads).value();
    std::vector<std::span<const float>> initial;
    std::vector<std::span<float>> replica;
    std::vector<std::vector<float>> gradient;
    for (uint32_t t = 0; t < task.tensors().size(); ++t) {
      initial.push_back(task.initial(t));
      replica.push_back(client->replica(t));
      gradient.emplace_back(task.tensors()[t].value_count());
    }
    const std::vector<std::span<float>> tensors(gradient.begin(), gradient.end());
    const LocalStepsSpec& local = job_.task.local;
    client::LocalSteps steps(local, task.tensors());
    absl::StatusOr<Step> step = client->Join(initial);
    ASSERT_TRUE(step.ok()) << step.status();
    while (step->value < kSteps) {
      client->BeginStep(*step, kBatch * local.count);
      ASSERT_TRUE(client->WaitAll().ok());
      steps.Begin(replica);
      for (uint32_t i = 0; i < local.count; ++i) {
        ASSERT_TRUE(task.Gradient(WorkerId{number}, *step, i, replica, tensors).ok());
        if (local.enabled()) steps.Apply(replica, tensors);
      }
      if (local.enabled()) steps.Finish(replica, tensors);
      for (uint32_t t = tensors.size(); t-- > 0;) client->Ready(t, tensors[t]);
      ASSERT_TRUE(client->EndStep().ok());
      step = client->NextStep();
      ASSERT_TRUE(step.ok()) << step.status();
    }
    client->Leave().IgnoreError();
  }

  uint32_t ReadCrc() {
    std::map<std::string, std::map<uint64_t, std::string>> tensors;
    for (const auto& job : jobs_) {
      bool more = true;
      for (size_t place = 0; more; ++place) {
        absl::Notification told;
        job->Masters({}, place, [&](absl::StatusOr<std::vector<MastersChunk>> reply) {
          more = reply.ok() && !reply->empty();
          if (more) {
            for (const MastersChunk& chunk : *reply) {
              tensors[chunk.tensor()][chunk.offset()] = chunk.values();
            }
          }
          told.Notify();
        });
        told.WaitForNotification();
      }
    }
    EXPECT_EQ(tensors.size(), 3);
    uint32_t crc = 0;
    for (const auto& [name, pieces] : tensors) {
      for (const auto& [offset, values] : pieces)
        crc = Crc32c(std::as_bytes(std::span(values)), crc);
    }
    return crc;
  }

  PosixFiles files_;
  const std::string state_dir_;
  const JobConfig config_;
  const JobSpec job_;
  ManualClock clock_;
  JobThreads threads_{2};
  std::vector<StateFolder> folders_;
  std::vector<std::unique_ptr<Job>> jobs_;
  uint32_t crc_ = 0;
};

// Records a run of the job with CHANGE and replays it both ways without another change.
void ReplayAndCompare(const std::string& change) {
  const JobConfig config = ConfigOf(change);
  RecordedRun run(config);
  run.Train();
  const absl::StatusOr<Recording> recording = run.Read();
  ASSERT_TRUE(recording.ok()) << recording.status();
  size_t replays = 0;
  for (const ReplayOf what : {ReplayOf::kPayloads, ReplayOf::kGradients}) {
    const auto result = RunReplay(*recording, what, SpecOf(config), MakeTask, {.threads = 2});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->parameters_crc(), run.crc()) << static_cast<int>(what);
    EXPECT_EQ(result->examples(), kSteps * kBatch * kWorkers * config.task().local_steps());
    EXPECT_EQ(result->point_size(), 3);
    EXPECT_EQ(result->steps(), kSteps);
    ++replays;
  }
  EXPECT_EQ(replays, 2);
}

TEST(ReplayTest, AsyncRunReplaysBitForBit) { ReplayAndCompare(""); }

TEST(ReplayTest, RunWithSparsePushesReplaysBitForBit) {
  ReplayAndCompare("compression { push: topk density: 0.1 density_warmup: 0.5 pull: bf16 }");
}

TEST(ReplayTest, RunWithDeltasAndMomentumCorrectionReplaysBitForBit) {
  ReplayAndCompare(
      "consistency { mode: ssp slack: 2 fold_every: 2 } optimization { optimizer: sgd }"
      "compression { push: topk density: 0.1 momentum_correction: true pull: delta }");
}

TEST(ReplayTest, RunWithLocalStepsReplaysBitForBit) {
  ReplayAndCompare(
      "optimization { optimizer: sgd learning_rate: 0.5 } compression { push: fp8_e5m2 pull: delta "
      "}"
      "task { local_steps: 3 local_optimizer: momentum }");
}

TEST(ReplayTest, ChangedSettingChangesTheRun) {
  const JobConfig config = ConfigOf("");
  RecordedRun run(config);
  run.Train();
  const Recording recording = run.Read().value();
  const RunSpec slow = SpecOf(ConfigOf("optimization { learning_rate: 0.01 }"));
  const auto server = RunReplay(recording, ReplayOf::kPayloads, slow, MakeTask, {}).value();
  const auto all = RunReplay(recording, ReplayOf::kGradients, slow, MakeTask, {}).value();
  EXPECT_NE(server.parameters_crc(), run.crc());
  EXPECT_NE(all.parameters_crc(), server.parameters_crc());
  const auto again =
      RunReplay(recording, ReplayOf::kGradients, slow, MakeTask, {.threads = 3}).value();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(all, again));

  const RunSpec encoded = SpecOf(ConfigOf("compression { push: int8 }"));
  const auto smaller = RunReplay(recording, ReplayOf::kGradients, encoded, MakeTask, {}).value();
  EXPECT_LT(smaller.push_bytes(), all.push_bytes() / 3);
  EXPECT_EQ(RunReplay(recording, ReplayOf::kPayloads, encoded, MakeTask, {})->parameters_crc(),
            run.crc());
}

// A recording of one shard and two workers, in which every push but the first has staleness 1.
Recording StaleRecording() {
  JobConfig config = ConfigOf("servers: 1 consistency { workers: 2 }");
  JobSpec job = CheckJob(config).value();
  LogisticTask task;
  Partition partition = Partition::Make({task.tensors()[1]}, 0, 1).value();
  Recording recording = {.config = std::move(config),
                         .job = std::move(job),
                         .partition = std::move(partition),
                         .generation = Generation{1},
                         .planned_examples = 4 * kBatch,
                         .events = {}};
  std::vector<Event>& events = recording.events.emplace_back();
  const size_t count = recording.partition.value_count();
  const auto payload = [count](float value) {
    const auto values = std::make_shared<std::vector<float>>(count, value);
    return EncodedPayload(LendFp32(*values, values), count);
  };
  events.push_back(SeedEvent{payload(1)});
  for (uint32_t w = 0; w < 2; ++w) {
    events.push_back(JoinEvent{WorkerId{w}, Incarnation{1}});
    events.push_back(ReadEvent{WorkerId{w}, Incarnation{1}, Generation{1}, Step{0}, {}});
  }
  for (uint64_t push = 0; push < 4; ++push) {
    events.push_back(PushEvent{.worker = WorkerId{static_cast<uint32_t>(push % 2)},
                               .incarnation = Incarnation{1},
                               .generation = Generation{1},
                               .step = Step{push / 2},
                               .examples = kBatch,
                               .computed_version = Version{push == 0 ? 0 : push - 1},
                               .read_form = {},
                               .payload = payload(0.5f)});
  }
  return recording;
}

TEST(ReplayTest, DroppedPushesDoNotShiftTheVersionsThatLaterOnesRead) {
  const Recording recording = StaleRecording();
  RunSpec spec;
  spec.job = recording.job;
  spec.tests = 1;
  const auto as_recorded = RunReplay(recording, ReplayOf::kPayloads, spec, MakeTask, {});
  ASSERT_TRUE(as_recorded.ok()) << as_recorded.status();
  EXPECT_EQ(as_recorded->staleness().at(0), 1);
  EXPECT_EQ(as_recorded->staleness().at(1), 3);
  // Both pushes of worker 1 are dropped. Its second one was computed from the state after its first
  // one, which now has version 1; the push of worker 0 in between makes it stale again.
  spec.job.staleness = {.policy = StalenessPolicy::kDrop, .bound = 0};
  const auto dropped = RunReplay(recording, ReplayOf::kPayloads, spec, MakeTask, {});
  ASSERT_TRUE(dropped.ok()) << dropped.status();
  EXPECT_EQ(dropped->dropped_pushes(), 2);
  EXPECT_EQ(dropped->updates(), 2);
  EXPECT_EQ(dropped->staleness().at(0), 2);
}

TEST(ReplayTest, SettingsThatTheEventsFixAreRefused) {
  const JobConfig config = ConfigOf("");
  RecordedRun run(config);
  run.Train();
  const Recording recording = run.Read().value();
  const RunSpec spec =
      SpecOf(ConfigOf("servers: 1 consistency { workers: 4 }"
                      "task { seed: 7 local_steps: 2 accumulate: 2 }"));
  EXPECT_EQ(RunReplay(recording, ReplayOf::kPayloads, spec, MakeTask, {}).status().message(),
            "servers: cannot change in a replay (expected 2)\n"
            "workers: cannot change in a replay (expected 3)\n"
            "accumulate: cannot change in a replay (expected 1)\n"
            "local_steps: cannot change in a replay (expected 1)\n"
            "seed: cannot change in a replay (expected 1)");
}

TEST(ReplayTest, FolderWithoutALogIsRefused) {
  PosixFiles files;
  EXPECT_TRUE(absl::IsNotFound(ReadRecording(files, testing::TempDir() + "/none").status()));
}

TEST(ReplayTest, GradientsOfARestartedWorkerAreNotComputedAgain) {
  const JobConfig config = ConfigOf("");
  RecordedRun run(config);
  run.Train();
  Recording recording = run.Read().value();
  size_t changed = 0;
  for (Event& event : recording.events[0]) {
    auto* const push = std::get_if<PushEvent>(&event);
    if (push == nullptr || push->worker != WorkerId{1} || push->step < Step{10}) continue;
    ++push->incarnation;
    ++changed;
  }
  EXPECT_EQ(changed, kSteps - 10);
  EXPECT_EQ(
      RunReplay(recording, ReplayOf::kGradients, SpecOf(config), MakeTask, {}).status().message(),
      "worker 1 was restarted during the recorded run");
}

}  // namespace
}  // namespace thinwire::lab
