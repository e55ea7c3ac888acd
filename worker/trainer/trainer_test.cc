#include "worker/trainer/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/encode/worker_folder.h"
#include "client/testing/fake_server.h"
#include "client/testing/in_process_transport.h"
#include "common/codec/codec.h"
#include "common/codec/payload.h"
#include "common/files/safetensors.h"
#include "common/spec/local_steps_spec.h"
#include "common/time/thread_executor.h"
#include "proto/parameter_service.pb.h"
#include "proto/worker_event.pb.h"
#include "proto/worker_event_json.h"
#include "worker/trainer/trainer_state.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A model of two tensors whose gradient is half of the parameters, so that each step halves the
// parameters. The loss of every example is 1, so that a sum of losses is a number of examples.
class DecayModel final : public Model {
 public:
  const std::vector<TensorShape>& tensors() const override { return tensors_; }
  std::span<const float> initial(uint32_t) const override { return initial_; }
  void Bind(uint32_t tensor, std::span<float> memory, Place) override { bound_[tensor] = memory; }

  absl::StatusOr<BatchResult> Train(const Batch& batch, float loss_scale, const Gate& gate,
                                    const Sink& sink) override {
    for (uint32_t i : {0u, 1u}) {
      const absl::Status status = gate(i);
      if (!status.ok()) return status;
    }
    if (train_error_) return absl::InvalidArgumentError("no such layer");
    trained.emplace_back(batch.labels.begin(), batch.labels.end());
    part_sizes.push_back(batch.part_size);
    random_seeds.push_back(batch.random_seed);
    loss_scales.push_back(loss_scale);
    for (uint32_t i : {1u, 0u}) {
      gradients_[i].assign(bound_[i].begin(), bound_[i].end());
      for (float& g : gradients_[i]) g = g / 2 * loss_scale;
      if (i == 0 && loss_scale > largest_scale_) gradients_[i][2] = -INFINITY;
      sink(i, {.values = gradients_[i]});
    }
    const double loss = trained.size() > lost_after_ ? std::nan("") : 1;
    return BatchResult{.loss_sum = loss * static_cast<double>(batch.labels.size()),
                       .examples = batch.labels.size()};
  }
  absl::StatusOr<BatchResult> Evaluate(const Batch& batch) override {
    evaluated.push_back(bound_[0][0]);
    const uint64_t correct = evaluated.size() > results.size() ? 1 : results[evaluated.size() - 1];
    return BatchResult{.loss_sum = test_loss, .correct = correct, .examples = batch.labels.size()};
  }
  bool has_buffers() const override { return true; }
  absl::StatusOr<std::vector<ModelBuffer>> Buffers() const override {
    if (has_complex_buffer) return absl::InvalidArgumentError("buffer: complex");
    return std::vector<ModelBuffer>{
        {.name = "trained", .dtype = "U8", .bytes = {static_cast<uint8_t>(trained.size())}}};
  }
  void SetBuffers(std::span<const ModelBuffer> buffers) override {
    restored.push_back(buffers[0].bytes[0]);
  }
  void ResetBuffers() override { ++reset_count; }
  absl::Status UpdateBuffers(const Batch&) override {
    ++update_count;
    return absl::OkStatus();
  }
  void FailInTraining() { train_error_ = true; }
  // Makes the loss NaN after `batches` batches.
  void LoseAfter(size_t batches) { lost_after_ = batches; }
  // Makes the first tensor's gradient overflow if the loss scale is above `largest_scale`.
  void OverflowAbove(float largest_scale) { largest_scale_ = largest_scale; }

  std::vector<std::vector<int64_t>> trained;  // the labels of each trained batch
  std::vector<uint64_t> part_sizes;           // Batch::part_size of each trained batch
  std::vector<uint64_t> random_seeds;         // the random seed of each trained batch
  std::vector<float> loss_scales;             // the loss scale of each call of Train()
  std::vector<float> evaluated;               // the first parameter in each call of Evaluate()
  std::vector<uint64_t> results;  // the correct predictions of each call of Evaluate(); later: 1
  double test_loss = 0;           // of each call of Evaluate()
  bool has_complex_buffer = false;
  std::vector<int> restored;  // the value of the buffer in each call of SetBuffers()
  int reset_count = 0;
  int update_count = 0;

 private:
  const std::vector<TensorShape> tensors_ = {{"w", {2, 2}}, {"b", {4}}};
  const std::vector<float> initial_ = {1, 2, 3, 4};
  std::span<float> bound_[2];
  std::vector<float> gradients_[2];
  bool train_error_ = false;
  size_t lost_after_ = 1'000'000;
  float largest_scale_ = INFINITY;
};

// A fake server of a job that other workers have already joined.
class SharedServer final : public InProcessServer {
 public:
  explicit SharedServer(FakeServer& server) : server_(server) {}

  void Opened(uint64_t stream, Peer peer) override { server_.Opened(stream, std::move(peer)); }
  void Frame(uint64_t stream, const ByteChain& frame) override { server_.Frame(stream, frame); }
  void Closed(uint64_t stream) override { server_.Closed(stream); }
  absl::StatusOr<JoinReply> Join(const JoinRequest& request) override {
    absl::StatusOr<JoinReply> reply = server_.Join(request);
    if (!reply.ok()) return reply;
    reply->mutable_deals()->Assign(deals.begin(), deals.end());
    if (!deals.empty()) reply->set_dealt_until(100);
    if (trial_end.has_value()) reply->set_dealt_until(*trial_end);
    if (frontier == 0) return reply;
    for (ShardState& shard : *reply->mutable_shards()) shard.set_frontier(frontier);
    return reply;
  }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) override {
    absl::StatusOr<HeartbeatReply> reply = server_.Heartbeat(request);
    reply->set_retired(retires);
    const auto ends_trial = [this](const auto& test) { return test.step() == trial_end; };
    if (std::ranges::any_of(request.tests(), ends_trial)) reply->set_dealt_until(100);
    if (request.has_stops_before()) stops_before = request.stops_before();
    if (request.has_stops_before() && stop_step.has_value()) reply->set_stop_step(*stop_step);
    const bool present = heartbeat_count.fetch_add(1) < others_leave_after;
    for (uint32_t worker : others) {
      if (present) reply->add_live(worker);
    }
    if (reply->has_evaluator()) {
      reply->set_evaluator(evaluator.value_or(*std::ranges::min_element(reply->live())));
    }
    return reply;
  }
  absl::StatusOr<LeaveReply> Leave(const LeaveRequest& request) override {
    return server_.Leave(request);
  }
  absl::StatusOr<std::vector<MastersChunk>> Masters(const MastersRequest& request) override {
    leaves_before_masters = server_.leave_count();
    absl::StatusOr<std::vector<MastersChunk>> chunks = server_.Masters(request);
    if (!request.averages() || !average || !chunks.ok()) return chunks;
    for (MastersChunk& chunk : *chunks) {
      const std::vector<float> values(chunk.values().size() / sizeof(float), *average);
      chunk.set_values(values.data(), chunk.values().size());
    }
    return chunks;
  }

  // `frontier` is the frontier that every shard reports in a Join reply, if it is not 0; `others`
  // are additional live workers in a Heartbeat reply. A test sets both before it creates the
  // client.
  uint64_t frontier = 0;
  std::vector<uint32_t> others;
  // The evaluator in Heartbeat replies; unset: the live worker with the lowest number.
  std::optional<uint32_t> evaluator;
  std::vector<Deal> deals;               // in the replies to Join
  std::optional<uint64_t> trial_end;     // this step is dealt after its test
  std::optional<float> average;          // of all parameters; unset: the job has no averages
  std::optional<uint64_t> stop_step;     // for a worker that was asked to stop
  std::atomic<uint64_t> stops_before{};  // in the last such request
  bool retires = false;                  // heartbeat replies say that the worker must leave
  // The number of heartbeats after which `others` have left.
  int others_leave_after = 1'000'000;
  std::atomic<int> heartbeat_count = 0;
  std::atomic<int> leaves_before_masters = -1;  // calls of Leave before the last call of Masters

 private:
  FakeServer& server_;
};

Dataset NumberedExamples(int count) {
  Dataset dataset = {.example_shape = {1}, .class_count = static_cast<uint32_t>(count)};
  std::vector<float> values;
  for (int i = 0; i < count; ++i) {
    dataset.labels.push_back(i);
    values.push_back(static_cast<float>(i));
  }
  dataset.values = std::move(values);
  return dataset;
}

// A push codec that leaves a residual.
constexpr CodecSpec kSparse = {.id = CodecId::kTopK, .density = 0.25};

class TrainerTest : public ::testing::Test {
 protected:
  struct Job {
    int examples = 10;
    uint32_t worker = 0;
    uint32_t workers = 1;
    uint32_t batch_size = 4;
    uint32_t accumulate = 1;
    LocalStepsSpec local = {};
    uint64_t epochs = 2;
    int stop_after = 1'000'000;
    // The number of heartbeats that the server must answer before training begins.
    int heartbeats = 0;
    // Client::Stop is called before this step, whose parameters the server does not send.
    std::optional<int> stop_waiting_at = std::nullopt;
    bool stop_before_join = false;
    absl::Duration delay;  // Client::Stop is called in the first delay
    // Called before each step of the trainer with the number of earlier calls.
    std::function<void(int)> before_step = nullptr;
    std::string state_dir = "";
    std::optional<LossScaling> loss_scaling = std::nullopt;
    bool stop_on_divergence = true;
    CodecSpec push = {};
    absl::Duration drain = absl::Seconds(30);
    bool keeps_state = false;
    bool bad_example = false;  // the first value of the first example is NaN
    std::optional<ModelOutputOptions> output = std::nullopt;
    bool averages = false;
    uint64_t trial_steps = 0;
  };

  absl::StatusOr<Trainer::Ending> Run(const Job& job) {
    ClientOptions options;
    options.worker = WorkerId{job.worker};
    options.heartbeat_interval = absl::Milliseconds(1);
    options.state_dir = job.state_dir;
    options.push = job.push;
    if (job.trial_steps > 0) options.arms = {{.codec = job.push}};
    options.drain = job.drain;
    options.fragments = job.local.fragments;
    const auto client = Client::Make(options, model_.tensors(), transport_, threads_).value();
    Dataset train = NumberedExamples(job.examples);
    if (job.bad_example) std::get<std::vector<float>>(train.values)[0] = std::nanf("");
    Sampler sampler({.example_count = static_cast<uint64_t>(job.examples),
                     .worker = WorkerId{job.worker},
                     .workers = job.workers,
                     .batch_size = job.batch_size,
                     .batch_count = job.accumulate * job.local.count});
    EventPrinter events(out_, WorkerId{job.worker});
    int asked = 0;
    bool stopped = false;
    if (job.stop_before_join) client->Stop();
    TrainerOptions trainer_options = {.worker = WorkerId{job.worker},
                                      .epochs = job.epochs,
                                      .delay = job.delay,
                                      .batch_size = job.batch_size,
                                      .accumulate = job.accumulate,
                                      .local = job.local,
                                      .keeps_state = job.keeps_state,
                                      .averages = job.averages,
                                      .loss_scaling = job.loss_scaling,
                                      .stop_on_divergence = job.stop_on_divergence,
                                      .divergence_advice = "a lower rate",
                                      .trial_steps = job.trial_steps,
                                      .output = job.output,
                                      .write_again = absl::Milliseconds(1)};
    Trainer trainer(trainer_options, {.client = *client,
                                      .model = model_,
                                      .train = train,
                                      .test = test_,
                                      .sampler = sampler,
                                      .events = events,
                                      .clock = clock_,
                                      .stop = [&](absl::Duration longest) {
                                        if (longest > absl::ZeroDuration()) {
                                          EXPECT_EQ(longest, job.delay);
                                          client->Stop();
                                          stopped = true;
                                        }
                                        if (stopped) return true;
                                        while (shared_.heartbeat_count < job.heartbeats)
                                          std::this_thread::yield();
                                        if (job.before_step != nullptr) job.before_step(asked);
                                        if (asked + 1 == job.stop_waiting_at) HoldReads();
                                        if (asked == job.stop_waiting_at) client->Stop();
                                        if (asked == job.stop_after) client->Stop();
                                        return asked++ >= job.stop_after;
                                      }});
    return trainer.Run();
  }

  // From now on, the server does not answer reads.
  void HoldReads() {
    std::vector<ShardId> all;
    for (uint32_t s = 0; s < partition_.shard_count(); ++s) all.push_back(ShardId{s});
    server_.HoldReads(all, WorkerId{7});
  }

  // Returns the worker's events of the given kind, in the order in which they were written.
  std::vector<WorkerEvent> Events(WorkerEvent::EventCase kind) const {
    std::vector<WorkerEvent> events;
    std::istringstream lines(out_.str());
    for (std::string line; std::getline(lines, line);) {
      WorkerEvent event = ParseWorkerEvent(line).value();
      if (event.event_case() == kind) events.push_back(std::move(event));
    }
    return events;
  }
  WorkerEvent::Done Done() const {
    const std::vector<WorkerEvent> events = Events(WorkerEvent::kDone);
    EXPECT_THAT(events, SizeIs(1));
    return events.empty() ? WorkerEvent::Done() : events[0].done();
  }

  // Returns the tensors of the model file as text: "b [4]: 1 2 3 4".
  std::vector<std::string> OutputTensors() const {
    std::ifstream in(output_.path, std::ios::binary);
    const std::vector<uint8_t> file{std::istreambuf_iterator<char>(in), {}};
    const auto index = ParseSafetensors(file, output_.path);
    std::vector<std::string> texts;
    if (!index.ok()) return texts;
    for (const auto& [name, entry] : *index) {
      std::string& text =
          texts.emplace_back(absl::StrCat(name, " [", absl::StrJoin(entry.shape, ", "), "]:"));
      for (size_t i = 0; i < entry.value_count(); ++i) {
        float value = entry.bytes[i];
        if (entry.dtype == "F32") std::memcpy(&value, entry.bytes.data() + 4 * i, 4);
        absl::StrAppend(&text, " ", value);
      }
    }
    return texts;
  }

  DecayModel model_;
  // Returns the steps before which the state of worker 0 was saved.
  std::vector<Step> SavedSteps() const {
    return client::WorkerFolder::Open(state_dir_, WorkerId{0})->Steps().value();
  }
  // Returns the path of the loss-scale file of STEP.
  std::string LossScalePathOf(uint64_t step) const {
    const auto folder = client::WorkerFolder::Open(state_dir_, WorkerId{0});
    return LossScalePath(folder->PathOf(Step{step}));
  }

  const std::string state_dir_ = [] {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    const std::string dir = ::testing::TempDir() + "/" + name;
    std::filesystem::remove_all(dir);
    return dir;
  }();
  ModelOutputOptions output_ = {.path = state_dir_ + ".safetensors", .job = "train"};
  const Dataset test_ = NumberedExamples(4);
  Partition partition_ = Partition::Make(model_.tensors(), 0, 1).value();
  FakeServer server_{partition_, ServerId{0}};
  SharedServer shared_{server_};
  InProcessTransport transport_{{&shared_}};
  Threads threads_;
  ManualClock clock_;
  std::ostringstream out_;
};

TEST_F(TrainerTest, EveryEpochTakesEveryExampleOnce) {
  ASSERT_EQ(Run({}).value(), Trainer::Ending::kFinished);
  ASSERT_THAT(model_.trained, SizeIs(6));
  for (size_t epoch : {0, 1}) {
    std::vector<int64_t> labels;
    for (size_t i = 3 * epoch; i < 3 * epoch + 3; ++i) {
      labels.insert(labels.end(), model_.trained[i].begin(), model_.trained[i].end());
    }
    EXPECT_THAT(labels, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  }
  EXPECT_EQ(server_.leave_count(), 1);
}

TEST_F(TrainerTest, EvaluationSeesTheResultOfTheLastStep) {
  ASSERT_TRUE(Run({}).ok());
  // An epoch has three steps. Each step halves the parameters.
  EXPECT_THAT(model_.evaluated, ElementsAre(1.0f / 8, 1.0f / 64));
}

TEST_F(TrainerTest, EventsDescribeTheWholeRun) {
  ASSERT_TRUE(Run({}).ok());
  ASSERT_THAT(Events(WorkerEvent::kJoined), SizeIs(1));
  EXPECT_EQ(Events(WorkerEvent::kJoined)[0].joined().step(), 0);
  // A worker reports a step at most every 200 ms. The test's clock does not advance, so only the
  // first step is reported.
  ASSERT_THAT(Events(WorkerEvent::kStep), SizeIs(1));
  EXPECT_EQ(Events(WorkerEvent::kStep)[0].step().examples(), 4);
  const std::vector<WorkerEvent> epochs = Events(WorkerEvent::kEpoch);
  ASSERT_THAT(epochs, SizeIs(2));
  for (uint64_t i : {0, 1}) {
    EXPECT_EQ(epochs[i].epoch().epoch(), i);
    EXPECT_EQ(epochs[i].epoch().train_loss(), 1);
    EXPECT_EQ(epochs[i].epoch().test_accuracy(), 0.25);
  }
  const WorkerEvent::Done done = Done();
  EXPECT_EQ(done.steps(), 6);
  EXPECT_EQ(done.examples(), 20);
  EXPECT_EQ(done.evaluator(), true);
  EXPECT_EQ(done.final_test_accuracy(), 0.25);
  EXPECT_EQ(done.counters().accepted_pushes(), 6 * partition_.shard_count());
}

TEST_F(TrainerTest, AccumulatedBatchesAreOneBatchInParts) {
  ASSERT_TRUE(Run({.batch_size = 2, .accumulate = 3, .epochs = 1}).ok());
  ASSERT_THAT(model_.trained, SizeIs(2));
  EXPECT_THAT(model_.trained[0], SizeIs(6));
  EXPECT_THAT(model_.trained[1], SizeIs(4));
  EXPECT_THAT(model_.part_sizes, ElementsAre(2, 2));
  for (const PushEntry& push : server_.pushes()) {
    EXPECT_EQ(push.examples, push.step == Step{0} ? 6 : 4);
  }
}

// With this rate, a local step halves the parameters, as a step of the other tests does.
constexpr LocalStepsSpec kThreeLocalSteps = {.count = 3, .learning_rate = 1};

TEST_F(TrainerTest, LocalStepsPushTheDifferenceOfTheParameters) {
  ASSERT_TRUE(Run({.batch_size = 2, .local = kThreeLocalSteps}).ok());
  // Each of the two epochs has a step of three batches and a step of two.
  ASSERT_THAT(model_.trained, SizeIs(10));
  for (const auto& batch : model_.trained) EXPECT_THAT(batch, SizeIs(2));
  EXPECT_THAT(model_.evaluated, ElementsAre(1.0f / 32, 1.0f / 1024));
  ASSERT_THAT(server_.pushes(), SizeIs(4 * partition_.shard_count()));
  for (const PushEntry& push : server_.pushes()) {
    EXPECT_EQ(push.examples, push.step.value % 2 == 0 ? 6 : 4) << push.step;
  }
  const WorkerEvent::Done done = Done();
  EXPECT_EQ(done.steps(), 4);
  EXPECT_EQ(done.examples(), 20);
  EXPECT_EQ(done.counters().nonfinite_gradients(), 0);
}

TEST_F(TrainerTest, LocalStepsHaveTheExamplesOfStepsInTheSameOrder) {
  ASSERT_TRUE(Run({.batch_size = 2, .epochs = 1}).ok());
  const auto steps = std::exchange(model_.trained, {});
  ASSERT_TRUE(Run({.batch_size = 2, .local = kThreeLocalSteps, .epochs = 1}).ok());
  EXPECT_EQ(model_.trained, steps);
}

TEST_F(TrainerTest, LocalStepsHaveDifferentRandomSeeds) {
  ASSERT_TRUE(Run({.batch_size = 2, .local = kThreeLocalSteps, .epochs = 1}).ok());
  EXPECT_EQ(std::set(model_.random_seeds.begin(), model_.random_seeds.end()).size(), 5u);
}

TEST_F(TrainerTest, ALateDifferenceIsPushedWithTheNextOne) {
  server_.set_judge([](const PushEntry& push) {
    const bool late = push.step == Step{0};
    return VerdictEntry{
        .kind = static_cast<uint32_t>(late ? PushVerdict::LATE : PushVerdict::ACCEPT),
        .frontier = push.step + 1};
  });
  ASSERT_TRUE(Run({.batch_size = 2, .local = kThreeLocalSteps, .epochs = 1}).ok());
  // Both differences begin at the initial parameters: 7/8 and 3/4 of them.
  EXPECT_EQ(server_.masters(partition_.ShardsOfTensor(0)[0])[0], 1 - 7.0f / 8 - 3.0f / 4);
}

TEST_F(TrainerTest, ALocalStepWhoseGradientIsNotFiniteIsSkipped) {
  model_.OverflowAbove(1024);
  ASSERT_TRUE(Run({.batch_size = 2,
                   .local = kThreeLocalSteps,
                   .epochs = 1,
                   .loss_scaling = LossScaling{.first = 4096, .interval = 2}})
                  .ok());
  // The scale halves in the first two local steps and doubles after two good ones.
  EXPECT_THAT(model_.loss_scales, ElementsAre(4096, 2048, 1024, 1024, 2048));
  EXPECT_EQ(server_.masters(partition_.ShardsOfTensor(0)[0])[0], 1.0f / 4);
  EXPECT_EQ(server_.masters(partition_.ShardsOfTensor(1)[0])[0], 1.0f / 4) << "of all tensors";
  for (const PushEntry& push : server_.pushes()) EXPECT_EQ(push.examples, 2) << push.step;
  EXPECT_EQ(Done().counters().overflowed_steps(), 3);
  EXPECT_EQ(Done().counters().nonfinite_gradients(), 3);
}

TEST_F(TrainerTest, AStepWithoutAFiniteLocalGradientHasWeightZero) {
  model_.OverflowAbove(0.5);  // the loss scale is 1
  EXPECT_EQ(Run({.batch_size = 2, .local = kThreeLocalSteps}).value(), Trainer::Ending::kDiverged);
  EXPECT_THAT(model_.trained, SizeIs(10));
  for (const PushEntry& push : server_.pushes()) EXPECT_EQ(push.examples, 0) << push.step;
  EXPECT_THAT(Done().diverged(), HasSubstr("every step of epoch 1 had a gradient that is not"));
}

// The job has two epochs of two steps: of three and of two batches. The checkpoint is of step 1.
TEST_F(TrainerTest, ARollbackIsFollowedWithLocalSteps) {
  server_.set_by_round();
  const auto before_step = [this](int asked) {
    if (asked == 1) server_.SaveCheckpoint();
    if (asked == 3) server_.RollBack(Generation{2});
  };
  ASSERT_EQ(Run({.batch_size = 2, .local = kThreeLocalSteps, .before_step = before_step}).value(),
            Trainer::Ending::kFinished);
  EXPECT_EQ(server_.masters(partition_.ShardsOfTensor(0)[0])[0], 1.0f / 1024)
      << "every step counts once";
  EXPECT_EQ(Done().counters().rollbacks(), 1);
}

// Both tensors are a shard, and each is a fragment. The job has two epochs of two steps of four local
// steps. The second step of an epoch exchanges both fragments at its end.
constexpr LocalStepsSpec kTwoFragments = {.count = 4, .learning_rate = 1, .fragments = 2};

TEST_F(TrainerTest, FragmentsArePushedOneAfterTheOther) {
  std::vector<size_t> trained;  // local steps before each push
  server_.set_judge([&](const PushEntry& push) {
    trained.push_back(model_.trained.size());  // the trainer waits for the answer
    return VerdictEntry{.kind = PushVerdict::ACCEPT, .frontier = push.step + 1};
  });
  ASSERT_TRUE(Run({.examples = 16, .batch_size = 2, .local = kTwoFragments}).ok());
  EXPECT_THAT(trained, ElementsAre(2, 4, 8, 8, 10, 12, 16, 16));
  std::vector<uint32_t> shards;
  for (const PushEntry& push : server_.pushes()) {
    shards.push_back(push.shard.value);
    EXPECT_EQ(push.examples, 8);
  }
  EXPECT_THAT(shards, ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(model_.evaluated, ElementsAre(1.0f / 256, 1.0f / 65536));
}

TEST_F(TrainerTest, LocalStepsGoOnWhileAFragmentIsExchanged) {
  const LocalStepsSpec local = {.count = 4, .learning_rate = 1, .overlap = 1, .mixing = 0.25};
  ASSERT_TRUE(Run({.examples = 16, .batch_size = 2, .local = local, .epochs = 1}).ok());
  // The server has 1/8 after three local steps. The worker is at 1/16 when it hears of that, and
  // goes on from a quarter of 1/16 and three quarters of 1/8.
  EXPECT_THAT(model_.evaluated, ElementsAre((0.25f / 16 + 0.75f / 8) / 16));
}

TEST_F(TrainerTest, ALateFragmentIsPushedWithTheNextOne) {
  server_.set_judge([](const PushEntry& push) {
    const bool late = push.step == Step{0} && push.shard == ShardId{0};
    return VerdictEntry{
        .kind = static_cast<uint32_t>(late ? PushVerdict::LATE : PushVerdict::ACCEPT),
        .frontier = push.step + 1};
  });
  ASSERT_TRUE(Run({.examples = 16, .batch_size = 2, .local = kTwoFragments, .epochs = 1}).ok());
  // The late difference is 3/4. Then the worker takes six local steps from the initial parameters.
  EXPECT_EQ(server_.masters(ShardId{0})[0], 1 - 3.0f / 4 - 63.0f / 64);
  EXPECT_EQ(server_.masters(ShardId{1})[0], 1.0f / 256);
}

// The worker goes on from the parameters of the checkpoint, which lack two local steps of fragment 0.
TEST_F(TrainerTest, ARollbackDropsLocalStepsThatWereNotPushed) {
  server_.set_by_round();
  const auto before_step = [this](int asked) {
    if (asked == 1) server_.SaveCheckpoint();
    if (asked == 3) server_.RollBack(Generation{2});
  };
  ASSERT_EQ(
      Run({.examples = 16, .batch_size = 2, .local = kTwoFragments, .before_step = before_step})
          .value(),
      Trainer::Ending::kFinished);
  EXPECT_EQ(server_.masters(ShardId{0})[0], 0x1p-14f);
  EXPECT_EQ(server_.masters(ShardId{1})[0], 0x1p-16f);
  EXPECT_EQ(Done().counters().rollbacks(), 1);
}

TEST_F(TrainerTest, AStoppedWorkerPushesTheRestOfItsLocalSteps) {
  ASSERT_EQ(Run({.examples = 32, .batch_size = 2, .local = kTwoFragments, .stop_after = 1}).value(),
            Trainer::Ending::kStopped);
  // Step 1 empties the residual, which here is only what step 0 has not pushed of fragment 0.
  EXPECT_EQ(server_.masters(ShardId{0})[0], 1.0f / 256);
  EXPECT_EQ(server_.masters(ShardId{1})[0], 1.0f / 256);
}

TEST_F(TrainerTest, ANewProcessContinuesWithTheSavedFragments) {
  Job job = {.examples = 32,
             .batch_size = 2,
             .local = kTwoFragments,
             .epochs = 1,
             .stop_after = 1,
             .state_dir = state_dir_,
             .keeps_state = true};
  shared_.stop_step = 1;
  ASSERT_EQ(Run(job).value(), Trainer::Ending::kStopped);
  EXPECT_THAT(SavedSteps(), ElementsAre(Step{0}, Step{1}));
  EXPECT_EQ(server_.masters(ShardId{0})[0], 1.0f / 4);
  EXPECT_EQ(server_.masters(ShardId{1})[0], 1.0f / 16);
  job.stop_after = 1'000'000;
  shared_.frontier = 1;
  ASSERT_EQ(Run(job).value(), Trainer::Ending::kFinished);
  EXPECT_EQ(server_.masters(ShardId{0})[0], 0x1p-16f);
  EXPECT_EQ(server_.masters(ShardId{1})[0], 0x1p-16f);
}

// The process before it may have pushed, in step 1, the local steps that the saved state has.
TEST_F(TrainerTest, AProcessThatBeginsAfterTheSavedStepDropsTheSavedFragments) {
  server_.set_by_round();
  Job job = {.examples = 32,
             .batch_size = 2,
             .local = kTwoFragments,
             .epochs = 1,
             .stop_after = 1,
             .state_dir = state_dir_,
             .keeps_state = true};
  shared_.stop_step = 1;
  ASSERT_EQ(Run(job).value(), Trainer::Ending::kStopped);
  job.stop_after = 1'000'000;
  ASSERT_EQ(Run(job).value(), Trainer::Ending::kFinished);
  EXPECT_EQ(Events(WorkerEvent::kJoined).back().joined().step(), 2u);
  EXPECT_EQ(server_.masters(ShardId{0})[0], 0x1p-10f) << "of steps 2 and 3";
  EXPECT_EQ(server_.masters(ShardId{1})[0], 0x1p-12f);
}

TEST_F(TrainerTest, AStepWithoutExamplesKeepsLocalStepsThatWereNotPushed) {
  Deal deal;
  deal.set_number(1);
  deal.set_step(1);
  deal.add_members(1);  // this worker has no examples from step 1 on
  shared_.deals = {deal};
  Deal back = deal;
  back.set_number(2);
  back.set_step(2);
  back.clear_members();
  back.add_members(0);
  shared_.deals.push_back(back);
  ASSERT_TRUE(Run({.examples = 24, .batch_size = 2, .local = kTwoFragments, .epochs = 1}).ok());
  // Step 0 and the last step have four local steps each, and step 1 has none.
  EXPECT_THAT(model_.trained, SizeIs(8));
  EXPECT_EQ(server_.masters(ShardId{0})[0], 1.0f / 256);
  EXPECT_EQ(server_.masters(ShardId{1})[0], 1.0f / 256);
}

TEST_F(TrainerTest, ADealChangesTheLocalStepsOfLaterSteps) {
  Deal deal;
  deal.set_number(1);
  deal.set_step(1);
  deal.add_members(0);
  deal.add_members(1);
  shared_.deals = {deal};
  // 10 examples: 4 in step 0, then 3 of the other 6.
  ASSERT_TRUE(Run({.batch_size = 2, .local = {.count = 2, .learning_rate = 1}, .epochs = 1}).ok());
  std::vector<size_t> sizes;
  for (const auto& batch : model_.trained) sizes.push_back(batch.size());
  EXPECT_THAT(sizes, ElementsAre(2, 2, 2, 1));
  EXPECT_EQ(Done().steps(), 2);
}

TEST_F(TrainerTest, ADealChangesTheAccumulatedBatchesOfLaterSteps) {
  Deal deal;
  deal.set_number(1);
  deal.set_step(2);
  deal.set_accumulate(2);
  deal.add_members(0);
  shared_.deals = {deal};
  // 10 examples in each of two epochs.
  ASSERT_TRUE(Run({.batch_size = 2, .epochs = 2}).ok());
  std::vector<size_t> sizes;
  for (const auto& batch : model_.trained) sizes.push_back(batch.size());
  EXPECT_THAT(sizes, ElementsAre(2, 2, 4, 2, 4, 4, 2));
  EXPECT_EQ(Done().examples(), 20);
  EXPECT_EQ(Done().steps(), 7);
}

TEST_F(TrainerTest, BuffersAreRecomputedFromBatchesOfOnePass) {
  shared_.frontier = 2;
  ASSERT_TRUE(Run({.examples = 40, .batch_size = 2, .local = kThreeLocalSteps}).ok());
  EXPECT_EQ(model_.update_count, 50);
}

TEST_F(TrainerTest, EveryStepHasTheRandomSeedOfItsWorkerAndStep) {
  ASSERT_TRUE(Run({.worker = 1, .workers = 2, .batch_size = 2, .epochs = 1}).ok());
  const Sampler sampler(
      {.example_count = 10, .worker = WorkerId{1}, .workers = 2, .batch_size = 2});
  ASSERT_THAT(model_.random_seeds, SizeIs(3));
  for (uint64_t t = 0; t < 3; ++t) {
    EXPECT_EQ(model_.random_seeds[t], sampler.RandomSeed(Step{t}));
  }
}

TEST_F(TrainerTest, ALossThatIsNotFiniteEndsTheRun) {
  model_.LoseAfter(1);
  EXPECT_EQ(Run({}).value(), Trainer::Ending::kDiverged);
  EXPECT_THAT(model_.trained, SizeIs(2));
  EXPECT_EQ(server_.leave_count(), 1);
  EXPECT_EQ(Done().diverged(),
            "the loss of step 1 is not finite; what usually helps: a lower rate");
  EXPECT_EQ(server_.last_leave().diverged(), Done().diverged());
  EXPECT_FALSE(server_.last_leave().failed());
  EXPECT_TRUE(Done().left_early());
  EXPECT_FALSE(Done().evaluator());
}

TEST_F(TrainerTest, WithoutStopOnDivergenceTheRunGoesOnAndHasDiverged) {
  model_.LoseAfter(2);
  EXPECT_EQ(Run({.stop_on_divergence = false}).value(), Trainer::Ending::kDiverged);
  EXPECT_THAT(model_.trained, SizeIs(6));
  EXPECT_THAT(Events(WorkerEvent::kEpoch)[0].epoch().diverged(),
              HasSubstr("the loss of step 2 is not finite"));
  EXPECT_THAT(Done().diverged(), HasSubstr("the loss of step 2 is not finite"));
  EXPECT_FALSE(Done().left_early());
}

TEST_F(TrainerTest, ALostLossOfABadExampleIsBlamedOnTheData) {
  model_.LoseAfter(0);
  // One batch holds all examples.
  EXPECT_EQ(Run({.batch_size = 10, .bad_example = true}).value(), Trainer::Ending::kDiverged);
  EXPECT_EQ(Done().diverged(),
            "the loss of step 0 is not finite: the data has a value that is not finite in this "
            "step's batch");
}

TEST_F(TrainerTest, ARunWithoutFiniteGradientsHasDiverged) {
  model_.OverflowAbove(0.5);  // the loss scale is 1
  EXPECT_EQ(Run({}).value(), Trainer::Ending::kDiverged);
  EXPECT_THAT(model_.trained, SizeIs(6));
  EXPECT_THAT(Done().diverged(), HasSubstr("every step of epoch 1 had a gradient that is not"));
}

TEST_F(TrainerTest, AHealthyRunHasNotDiverged) {
  EXPECT_EQ(Run({}).value(), Trainer::Ending::kFinished);
  EXPECT_EQ(Done().diverged(), "");
  EXPECT_FALSE(Done().left_early());
}

TEST_F(TrainerTest, AWorkerWithoutExamplesPushesWeightZero) {
  // Worker 1 has one of the 3 examples. It takes two steps, and the second step has no examples.
  ASSERT_TRUE(Run({.examples = 3, .worker = 1, .workers = 2, .batch_size = 1, .epochs = 1}).ok());
  const std::vector<PushEntry> pushes = server_.pushes();
  ASSERT_THAT(pushes, SizeIs(2 * partition_.shard_count()));
  for (const PushEntry& push : pushes) EXPECT_EQ(push.examples, push.step == Step{0} ? 1 : 0);
  EXPECT_THAT(model_.trained, SizeIs(1));
  EXPECT_EQ(Done().steps(), 2);
}

TEST_F(TrainerTest, AStoppedWorkerLeavesAfterTheCurrentStep) {
  EXPECT_EQ(Run({.stop_after = 2}).value(), Trainer::Ending::kStopped);
  EXPECT_THAT(model_.trained, SizeIs(2));
  EXPECT_EQ(server_.leave_count(), 1);
  EXPECT_EQ(Done().steps(), 2);
  EXPECT_EQ(Done().evaluator(), false);
}

TEST_F(TrainerTest, AStoppedWorkerSendsItsResidualWithOneMoreStep) {
  EXPECT_EQ(Run({.stop_after = 2, .push = kSparse}).value(), Trainer::Ending::kStopped);
  EXPECT_THAT(model_.trained, SizeIs(3));
  EXPECT_EQ(Done().steps(), 3);
  EXPECT_EQ(server_.leave_count(), 1);
  int sparse_count = 0, dense_count = 0;
  for (const PushEntry& push : server_.pushes()) {
    const auto payload = CheckPayload(push.payload, partition_.value_count(push.shard));
    ASSERT_TRUE(payload.ok()) << payload.status();
    if (partition_.HoldsVectors(push.shard)) continue;  // these have a dense codec in every step
    const bool last = push.step == Step{2};
    ++(last ? dense_count : sparse_count);
    EXPECT_EQ(PayloadCodec(*payload), last ? CodecId::kFp32 : CodecId::kTopK) << push.step;
  }
  EXPECT_EQ(sparse_count, 2);
  EXPECT_EQ(dense_count, 1);
}

TEST_F(TrainerTest, WorkersThatStopTogetherEndBeforeTheSameStepAndKeepTheirResiduals) {
  shared_.stop_step = 4;
  EXPECT_EQ(Run({.stop_after = 2,
                 .state_dir = state_dir_,
                 .push = kSparse,
                 .drain = absl::Hours(1),
                 .keeps_state = true})
                .value(),
            Trainer::Ending::kStopped);
  EXPECT_EQ(shared_.stops_before, 2);
  EXPECT_THAT(model_.trained, SizeIs(4));
  EXPECT_THAT(SavedSteps(), ElementsAre(Step{0}, Step{4}));
  EXPECT_FALSE(Done().has_lost_residual_l1());
  int sparse_count = 0;
  for (const PushEntry& push : server_.pushes()) {
    const auto payload = CheckPayload(push.payload, partition_.value_count(push.shard));
    ASSERT_TRUE(payload.ok()) << payload.status();
    if (PayloadCodec(*payload) == CodecId::kTopK) ++sparse_count;
  }
  EXPECT_EQ(sparse_count, 4) << "one matrix per step";
}

TEST_F(TrainerTest, AWorkerThatStopsAloneSendsItsResidual) {
  EXPECT_EQ(Run({.stop_after = 2,
                 .state_dir = state_dir_,
                 .push = kSparse,
                 .drain = absl::Seconds(3),
                 .keeps_state = true})
                .value(),
            Trainer::Ending::kStopped);
  EXPECT_EQ(shared_.stops_before, 2);
  EXPECT_THAT(model_.trained, SizeIs(3));
  EXPECT_EQ(Done().lost_residual_l1(), 0);
}

TEST_F(TrainerTest, AStoppedWorkerSendsALateLastPushAgain) {
  server_.set_judge([](const PushEntry& push) {
    const bool late = push.step == Step{2};
    return VerdictEntry{
        .kind = static_cast<uint32_t>(late ? PushVerdict::LATE : PushVerdict::ACCEPT),
        .frontier = push.step + 1};
  });
  EXPECT_EQ(Run({.stop_after = 2, .push = kSparse}).value(), Trainer::Ending::kStopped);
  EXPECT_THAT(model_.trained, SizeIs(4));
}

TEST_F(TrainerTest, AStoppedWorkerWithoutTimeRunsNoFurtherStep) {
  EXPECT_EQ(Run({.stop_after = 2, .push = kSparse, .drain = absl::ZeroDuration()}).value(),
            Trainer::Ending::kStopped);
  EXPECT_THAT(model_.trained, SizeIs(2));
  EXPECT_EQ(server_.leave_count(), 1);
  EXPECT_GT(Done().lost_residual_l1(), 0);
}

TEST_F(TrainerTest, ARetiredWorkerLeavesBeforeItsNextStep) {
  shared_.retires = true;
  EXPECT_EQ(Run({.heartbeats = 3}).value(), Trainer::Ending::kRetired);
  EXPECT_THAT(model_.trained, IsEmpty());
  EXPECT_EQ(server_.leave_count(), 1);
  EXPECT_EQ(Done().steps(), 0);
}

TEST_F(TrainerTest, ADealChangesTheBatchesAndTheEndOfTheRun) {
  Deal deal;
  deal.set_number(1);
  deal.set_step(1);
  deal.add_members(0);
  deal.add_members(1);
  shared_.deals = {deal};
  // 10 examples: 4 in step 0, then 3 of the other 6.
  ASSERT_TRUE(Run({.epochs = 1}).ok());
  ASSERT_THAT(model_.trained, SizeIs(2));
  EXPECT_THAT(model_.trained[0], SizeIs(4));
  EXPECT_THAT(model_.trained[1], SizeIs(3));
}

TEST_F(TrainerTest, TheStateIsSavedAfterJoiningAndBeforeTheAnnouncedStepOnly) {
  server_.set_checkpoint_step(Step{4});
  ASSERT_TRUE(Run({.heartbeats = 3, .state_dir = state_dir_}).ok());
  EXPECT_THAT(SavedSteps(), ElementsAre(Step{0}, Step{4}));
}

TEST_F(TrainerTest, AnAnnouncementThatArrivesTooLateSavesNothing) {
  const auto before_step = [this](int asked) {
    if (asked != 4) return;
    server_.set_checkpoint_step(Step{3});
    const int count = shared_.heartbeat_count;
    while (shared_.heartbeat_count < count + 2) std::this_thread::yield();
  };
  ASSERT_TRUE(Run({.before_step = before_step, .state_dir = state_dir_}).ok());
  EXPECT_THAT(SavedSteps(), ElementsAre(Step{0}));
}

TEST_F(TrainerTest, TheStateIsSavedWhenTheWorkerIsStopped) {
  ASSERT_TRUE(Run({.stop_after = 2, .state_dir = state_dir_}).ok());
  EXPECT_THAT(SavedSteps(), ElementsAre(Step{0}, Step{2}));
}

TEST_F(TrainerTest, ANewProcessContinuesWithTheSavedBuffersAndLocalOptimizer) {
  server_.set_by_round();
  const LocalStepsSpec local = {.count = 2,
                                .optimizer = LocalOptimizerKind::kMomentum,
                                .learning_rate = 0.5,
                                .momentum = 0.5};
  ASSERT_TRUE(Run({.examples = 32, .local = local, .stop_after = 2, .state_dir = state_dir_}).ok());
  ASSERT_THAT(SavedSteps(), ElementsAre(Step{0}, Step{2}));
  EXPECT_THAT(model_.trained, SizeIs(4));
  ASSERT_TRUE(Run({.examples = 32, .local = local, .stop_after = 0, .state_dir = state_dir_}).ok());
  EXPECT_THAT(model_.restored, ElementsAre(4));
  EXPECT_EQ(model_.reset_count, 0) << "the buffers need not be computed again";
  const auto folder = client::WorkerFolder::Open(state_dir_, WorkerId{0});
  const TrainerStateFile file = {TrainerStatePath(folder->PathOf(SavedSteps().back())), "train",
                                 WorkerId{0}, SavedSteps().back()};
  const TrainerState expected = {.buffers = *model_.Buffers(),
                                 .local = {.update_count = 0, .slots = {std::vector<float>(8)}}};
  const auto saved = ReadTrainerState(file, expected);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->local.update_count, 4u);
  EXPECT_NE(saved->local.slots, expected.local.slots);
}

TEST_F(TrainerTest, AStateThatCannotBeSavedFailsTheRunBeforeTraining) {
  std::ofstream(state_dir_) << "a file, not a folder";
  const auto ending = Run({.state_dir = state_dir_});
  EXPECT_THAT(std::string(ending.status().message()), HasSubstr("cannot create the folder"));
  EXPECT_THAT(model_.trained, SizeIs(0));
}

// With the initial loss scale the gradients overflow fp32. With half of this scale they are finite.
TEST_F(TrainerTest, AnOverflowHalvesTheScaleAndTrainingContinues) {
  ASSERT_TRUE(Run({.loss_scaling = LossScaling{.first = 0x1p127f, .largest = 0x1p127f}}).ok());
  EXPECT_THAT(model_.loss_scales,
              ElementsAre(0x1p127f, 0x1p126f, 0x1p126f, 0x1p126f, 0x1p126f, 0x1p126f));
  EXPECT_THAT(model_.evaluated, ElementsAre(1.0f / 4, 1.0f / 32))
      << "every step but the first halved the parameters";
  ASSERT_THAT(server_.pushes(), SizeIs(6 * partition_.shard_count()));
  for (const PushEntry& push : server_.pushes()) {
    EXPECT_EQ(push.examples == 0, push.step == Step{0}) << push.step;
  }
  const WorkerEvent::Done done = Done();
  EXPECT_EQ(done.loss_scale(), 0x1p126f);
  EXPECT_EQ(done.counters().overflowed_steps(), 1);
  EXPECT_EQ(done.counters().nonfinite_gradients(), partition_.shard_count());
}

TEST_F(TrainerTest, AnOverflowedShardDoesNotAffectTheOtherShardsOfItsStep) {
  model_.OverflowAbove(1024);
  ASSERT_TRUE(Run({.loss_scaling = LossScaling{.first = 4096}}).ok());
  const ShardId w = partition_.ShardsOfTensor(0)[0];
  const ShardId b = partition_.ShardsOfTensor(1)[0];
  ASSERT_NE(w, b);
  // The gradient of tensor w overflowed in the first two of six steps, so only four steps halved w.
  // All six steps halved b.
  EXPECT_EQ(server_.masters(w)[0], 1.0f / 16);
  EXPECT_EQ(server_.masters(b)[0], 1.0f / 64);
  EXPECT_EQ(Done().counters().overflowed_steps(), 2);
  EXPECT_EQ(Done().counters().nonfinite_gradients(), 2);
  EXPECT_EQ(Done().loss_scale(), 1024);
}

TEST_F(TrainerTest, TheScaleDoublesAfterAnIntervalOfGoodSteps) {
  ASSERT_TRUE(Run({.loss_scaling = LossScaling{.first = 8, .interval = 2}}).ok());
  EXPECT_THAT(model_.loss_scales, ElementsAre(8, 8, 16, 16, 32, 32));
  EXPECT_THAT(model_.evaluated, ElementsAre(1.0f / 8, 1.0f / 64)) << "the same as without scaling";
  EXPECT_EQ(Done().loss_scale(), 64);
}

TEST_F(TrainerTest, AStepWithoutExamplesDoesNotCountAsGood) {
  ASSERT_TRUE(Run({.examples = 3,
                   .worker = 1,
                   .workers = 2,
                   .batch_size = 1,
                   .epochs = 1,
                   .loss_scaling = LossScaling{.first = 8, .interval = 2}})
                  .ok());
  EXPECT_EQ(Done().steps(), 2);
  EXPECT_EQ(Done().loss_scale(), 8);
}

TEST_F(TrainerTest, TheLossScaleOutlivesTheProcess) {
  model_.OverflowAbove(1024);
  const LossScaling scaling = {.first = 4096, .interval = 3};
  // The scale halves in the first two steps, which overflow. The scale doubles after three good
  // steps in a row. The first process takes one of these steps, and the next process takes two.
  ASSERT_TRUE(Run({.stop_after = 3, .state_dir = state_dir_, .loss_scaling = scaling}).ok());
  model_.loss_scales.clear();
  model_.OverflowAbove(INFINITY);
  shared_.frontier = 3;
  ASSERT_TRUE(Run({.state_dir = state_dir_, .loss_scaling = scaling}).ok());
  EXPECT_THAT(model_.loss_scales, ElementsAre(1024, 1024, 2048));
}

// The scale doubles after every second step. The checkpoint is of step 1, after one good step.
TEST_F(TrainerTest, AfterARollbackTheLossScaleIsThatOfTheStep) {
  server_.set_by_round();
  server_.set_checkpoint_step(Step{1});
  const auto before_step = [this](int asked) {
    if (asked == 1) server_.SaveCheckpoint();
    if (asked == 4) server_.RollBack(Generation{2});
  };
  ASSERT_TRUE(Run({.heartbeats = 3,
                   .before_step = before_step,
                   .state_dir = state_dir_,
                   .loss_scaling = LossScaling{.first = 8, .interval = 2}})
                  .ok());
  ASSERT_GE(model_.loss_scales.size(), 9u);
  const std::vector<float> repeated(model_.loss_scales.end() - 5, model_.loss_scales.end());
  EXPECT_THAT(repeated, ElementsAre(8, 16, 16, 32, 32));
  EXPECT_THAT(SavedSteps(), ElementsAre(Step{0}, Step{1}));
}

TEST_F(TrainerTest, TheLossScaleFileOfAnotherJobFailsTheRunBeforeTraining) {
  ASSERT_TRUE(Run({.stop_after = 0, .state_dir = state_dir_, .loss_scaling = LossScaling{}}).ok());
  ASSERT_TRUE(WriteLossScale({LossScalePathOf(0), "another", WorkerId{0}}, {}).ok());
  const auto ending = Run({.state_dir = state_dir_, .loss_scaling = LossScaling{}});
  EXPECT_TRUE(absl::IsFailedPrecondition(ending.status())) << ending.status();
  EXPECT_THAT(model_.trained, SizeIs(0));
  EXPECT_EQ(server_.leave_count(), 2);
}

TEST_F(TrainerTest, OnlyTheEvaluatorThatTheLeadNamesEvaluates) {
  shared_.others = {1};
  shared_.evaluator = 1;
  ASSERT_TRUE(Run({.workers = 2}).ok());
  EXPECT_THAT(model_.evaluated, SizeIs(0));
  EXPECT_FALSE(Done().evaluator());
  shared_.others = {0};
  out_.str("");
  ASSERT_TRUE(Run({.worker = 1, .workers = 2}).ok());
  EXPECT_THAT(model_.evaluated, SizeIs(2));
  EXPECT_TRUE(Done().evaluator());
}

TEST_F(TrainerTest, AWorkerThatLeavesAfterTheLastStepSaysSo) {
  ASSERT_TRUE(Run({.stop_after = 2}).ok());
  EXPECT_FALSE(server_.last_leave().finished());
  EXPECT_FALSE(server_.last_leave().failed());
  ASSERT_TRUE(Run({}).ok());
  EXPECT_TRUE(server_.last_leave().finished());
  EXPECT_EQ(server_.last_leave().diverged(), "");
}

TEST_F(TrainerTest, OnlyTheLowestLiveWorkerEvaluates) {
  shared_.others = {0, 2};
  ASSERT_TRUE(Run({.worker = 1, .workers = 3, .heartbeats = 3}).ok());
  EXPECT_THAT(model_.evaluated, SizeIs(0));
  EXPECT_FALSE(Events(WorkerEvent::kEpoch).back().epoch().has_test_accuracy());
}

TEST_F(TrainerTest, TheNextWorkerEvaluatesWhenTheLowestIsGone) {
  shared_.others = {2};
  ASSERT_TRUE(Run({.worker = 1, .workers = 3, .heartbeats = 3}).ok());
  EXPECT_THAT(model_.evaluated, SizeIs(2));
}

TEST_F(TrainerTest, TheEvaluatorWritesTheFinalMastersAndItsBuffersAfterAllHaveLeft) {
  shared_.others = {2};
  shared_.others_leave_after = 50;
  model_.results = {1, 1, 3};
  ASSERT_EQ(Run({.heartbeats = 3, .output = output_}).value(), Trainer::Ending::kFinished);
  EXPECT_GE(shared_.heartbeat_count, 50);
  EXPECT_EQ(shared_.leaves_before_masters, 1);
  EXPECT_THAT(OutputTensors(),
              ElementsAre("b [4]: 0.015625 0.03125 0.046875 0.0625", "trained []: 6",
                          "w [2, 2]: 0.015625 0.03125 0.046875 0.0625"));
  EXPECT_EQ(Done().output(), output_.path);
  EXPECT_FALSE(Done().has_kept_epoch());
  EXPECT_EQ(Done().final_test_accuracy(), 0.75) << "the result with the masters";
}

TEST_F(TrainerTest, AWorkerThatDoesNotEvaluateWritesNoModelAndWaitsForNobody) {
  shared_.others = {0};
  ASSERT_TRUE(Run({.worker = 1, .workers = 2, .heartbeats = 3, .output = output_}).ok());
  EXPECT_FALSE(std::filesystem::exists(output_.path));
  EXPECT_EQ(Done().output(), "");
}

TEST_F(TrainerTest, TheBestEpochIsKeptAndTrainingGoesOnFromTheReplica) {
  ModelOutputOptions best = output_;
  best.keep = ModelOutputOptions::Keep::kBest;
  model_.results = {1, 3, 2, 3};  // three epochs, then the final parameters
  ASSERT_TRUE(Run({.epochs = 3, .output = best}).ok());
  EXPECT_THAT(model_.evaluated, ElementsAre(1.0f / 8, 1.0f / 64, 1.0f / 512, 1.0f / 512));
  EXPECT_THAT(OutputTensors(),
              ElementsAre("b [4]: 0.015625 0.03125 0.046875 0.0625", "trained []: 6",
                          "w [2, 2]: 0.015625 0.03125 0.046875 0.0625"));
  EXPECT_EQ(Done().kept_epoch(), 1);
  EXPECT_EQ(Done().final_test_accuracy(), 0.75);
  const ShardId shard = partition_.ShardsOfTensor(0)[0];
  EXPECT_EQ(server_.masters(shard)[0], 1.0f / 512);
}

TEST_F(TrainerTest, AveragesAreTestedAndWrittenAndTrainingGoesOnFromTheReplica) {
  shared_.average = 7;
  ASSERT_TRUE(Run({.output = output_, .averages = true}).ok());
  EXPECT_THAT(model_.evaluated, ElementsAre(7, 7, 7)) << "two epochs, then the final averages";
  EXPECT_THAT(OutputTensors(), ElementsAre("b [4]: 7 7 7 7", "trained []: 6", "w [2, 2]: 7 7 7 7"));
  EXPECT_EQ(server_.masters(partition_.ShardsOfTensor(0)[0])[0], 1.0f / 64);
}

TEST_F(TrainerTest, AStoppedWorkerWritesNoFinalModel) {
  EXPECT_EQ(Run({.stop_after = 2, .output = output_}).value(), Trainer::Ending::kStopped);
  EXPECT_FALSE(std::filesystem::exists(output_.path));
  EXPECT_EQ(Done().output(), "");
}

TEST_F(TrainerTest, ARunThatEndsWithASymptomWritesItsModel) {
  ModelOutputOptions best = output_;
  best.keep = ModelOutputOptions::Keep::kBest;
  for (const ModelOutputOptions& output : {output_, best}) {
    model_.OverflowAbove(0.5);  // the loss scale is 1
    out_.str("");
    EXPECT_EQ(Run({.output = output}).value(), Trainer::Ending::kDiverged);
    EXPECT_THAT(OutputTensors(), SizeIs(3));
    EXPECT_EQ(Done().output(), output_.path);
    EXPECT_THAT(Done().diverged(), HasSubstr("every step of epoch 1 had a gradient"));
    std::filesystem::remove(output_.path);
  }
}

TEST_F(TrainerTest, ARunThatStopsAtALostLossWritesNoModel) {
  model_.LoseAfter(2);
  EXPECT_EQ(Run({.output = output_}).value(), Trainer::Ending::kDiverged);
  EXPECT_FALSE(std::filesystem::exists(output_.path));
  EXPECT_EQ(Done().output(), "");
}

TEST_F(TrainerTest, ADivergedModelWithoutAFiniteTestLossIsNotWritten) {
  model_.LoseAfter(2);
  model_.test_loss = std::nan("");
  EXPECT_EQ(Run({.stop_on_divergence = false, .output = output_}).value(),
            Trainer::Ending::kDiverged);
  EXPECT_FALSE(std::filesystem::exists(output_.path));
  EXPECT_EQ(Done().output(), "");
  EXPECT_TRUE(std::isnan(Done().final_test_loss()));
}

TEST_F(TrainerTest, AModelFileIsWrittenAsSoonAsTheFileSystemLetsIt) {
  const std::string folder = output_.path + ".none";
  std::filesystem::remove_all(folder);
  output_.path = folder + "/file";
  // Six calls are made before the six steps, later ones after an attempt to write the file.
  const auto before_step = [&](int asked) {
    if (asked == 9) std::filesystem::create_directory(folder);
  };
  ASSERT_EQ(Run({.before_step = before_step, .output = output_}).value(),
            Trainer::Ending::kFinished);
  EXPECT_THAT(OutputTensors(), SizeIs(3));
  EXPECT_EQ(Done().output(), output_.path);
  const std::vector<WorkerEvent> waits = Events(WorkerEvent::kWaiting);
  ASSERT_GE(waits.size(), 2u);
  EXPECT_THAT(waits[waits.size() - 2].waiting().text(),
              HasSubstr("waits until the model can be written: " + output_.path));
  EXPECT_EQ(waits.back().waiting().text(), "");
}

TEST_F(TrainerTest, AWorkerThatIsStoppedGivesTheModelFileUp) {
  output_.path += ".none/file";
  EXPECT_EQ(Run({.stop_after = 9, .output = output_}).value(), Trainer::Ending::kNotWritten);
  EXPECT_EQ(Done().output(), "");
}

TEST_F(TrainerTest, AModelThatNoFileCanHaveFailsTheRun) {
  model_.has_complex_buffer = true;
  EXPECT_TRUE(absl::IsInvalidArgument(Run({.output = output_}).status()));
  EXPECT_THAT(Events(WorkerEvent::kDone), SizeIs(0));
}

TEST_F(TrainerTest, AWorkerOfANewJobKeepsItsBuffers) {
  ASSERT_TRUE(Run({}).ok());
  EXPECT_EQ(model_.reset_count, 0);
  EXPECT_EQ(model_.update_count, 0);
}

TEST_F(TrainerTest, AWorkerOfARunningJobRecomputesBuffersAndStartsAtTheJobsStep) {
  shared_.frontier = 4;
  ASSERT_TRUE(Run({}).ok());
  EXPECT_EQ(Events(WorkerEvent::kJoined)[0].joined().step(), 4);
  EXPECT_EQ(model_.reset_count, 1);
  EXPECT_EQ(model_.update_count, 50);
  EXPECT_THAT(model_.trained, SizeIs(2));
}

TEST_F(TrainerTest, AnEvaluatorThatJoinsAfterTheLastStepOfATrialTestsItFirst) {
  server_.set_push_candidate(0, Step{0});
  shared_.frontier = 8;
  shared_.trial_end = 8;
  EXPECT_EQ(Run({.epochs = 3, .trial_steps = 8}).value(), Trainer::Ending::kFinished);
  EXPECT_THAT(model_.trained, SizeIs(1));
}

TEST_F(TrainerTest, AWorkerThatJoinsAfterTheLastStepOnlyEvaluates) {
  shared_.frontier = 6;
  ASSERT_EQ(Run({}).value(), Trainer::Ending::kFinished);
  EXPECT_THAT(model_.trained, SizeIs(0));
  EXPECT_EQ(Done().final_test_accuracy(), 0.25);
}

TEST_F(TrainerTest, AWorkerThatJoinsAfterTheLastStepDoesNotWaitForAnEvaluatorThatWaitsForIt) {
  shared_.frontier = 6;
  shared_.others = {0};
  HoldReads();
  EXPECT_EQ(Run({.worker = 1, .workers = 2}).value(), Trainer::Ending::kFinished);
  EXPECT_EQ(server_.leave_count(), 1);
}

TEST_F(TrainerTest, SkippingTheLastStepOfAnEpochFinishesIt) {
  server_.set_judge([](const PushEntry& push) {
    VerdictEntry verdict = {.shard = push.shard, .step = push.step};
    const bool late = push.step == Step{1};
    verdict.kind = late ? PushVerdict::LATE : PushVerdict::ACCEPT;
    verdict.frontier = late ? Step{4} : push.step;
    return verdict;
  });
  ASSERT_TRUE(Run({}).ok());
  // The job has two epochs of 3 steps. The worker's push of step 1 is late, and the verdict says
  // that the other workers are at step 4. The worker therefore skips steps 2 and 3 and takes steps
  // 0, 1, 4 and 5.
  EXPECT_EQ(Done().steps(), 4);
  const std::vector<WorkerEvent> epochs = Events(WorkerEvent::kEpoch);
  ASSERT_THAT(epochs, SizeIs(2));
  EXPECT_EQ(epochs[0].epoch().epoch(), 0);
  EXPECT_EQ(epochs[1].epoch().epoch(), 1);
}

TEST_F(TrainerTest, AnErrorOfTheModelEndsTheRun) {
  model_.FailInTraining();
  EXPECT_EQ(Run({}).status(), absl::InvalidArgumentError("no such layer"));
  EXPECT_THAT(Events(WorkerEvent::kDone), SizeIs(0));
  EXPECT_EQ(server_.leave_count(), 1) << "the other workers need not wait for this worker's lease";
}

TEST_F(TrainerTest, AStopEndsAWaitForParametersAndSavesTheResiduals) {
  ASSERT_EQ(Run({.stop_after = 3, .stop_waiting_at = 2, .state_dir = state_dir_}).value(),
            Trainer::Ending::kStopped);
  EXPECT_THAT(model_.trained, SizeIs(2));
  EXPECT_THAT(SavedSteps(), ElementsAre(Step{0}, Step{2}));
  EXPECT_EQ(Done().steps(), 2);
  EXPECT_EQ(server_.leave_count(), 1);
}

// The job has two epochs of 3 steps. The checkpoint is of step 1.
TEST_F(TrainerTest, ARollbackIsFollowedAndAnEpochThatEndsAgainIsEvaluatedAgain) {
  server_.set_by_round();
  const auto before_step = [this](int asked) {
    if (asked == 1) server_.SaveCheckpoint();
    if (asked == 4) server_.RollBack(Generation{2});
  };
  ASSERT_EQ(Run({.before_step = before_step}).value(), Trainer::Ending::kFinished);
  EXPECT_THAT(model_.evaluated, ElementsAre(1.0f / 8, 1.0f / 8, 1.0f / 64));
  EXPECT_EQ(server_.masters(partition_.ShardsOfTensor(0)[0])[0], 1.0f / 64)
      << "every step counts once";
  const WorkerEvent::Done done = Done();
  EXPECT_EQ(done.counters().rollbacks(), 1);
  EXPECT_EQ(done.counters().repeated_steps(), 3);
  EXPECT_EQ(done.steps(), 4 + 5);
  EXPECT_THAT(Events(WorkerEvent::kJoined), SizeIs(1));
  EXPECT_EQ(model_.reset_count, 0) << "the buffers stay as they are";
  ASSERT_GE(model_.trained.size(), 9u);
  const std::vector<std::vector<int64_t>> last(model_.trained.end() - 5, model_.trained.end());
  const std::vector<std::vector<int64_t>> first(model_.trained.begin() + 1,
                                                model_.trained.begin() + 4);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), last.begin()))
      << "a step has the same examples when it is repeated";
}

TEST_F(TrainerTest, ARollbackDuringTheEvaluationIsFollowed) {
  server_.set_by_round();
  std::thread other;
  const auto before_step = [&](int asked) {
    if (asked == 1) server_.SaveCheckpoint();
    if (asked != 2) return;
    HoldReads();  // step 2 is the last one of its epoch
    other = std::thread([this] {
      while (server_.pushes().size() < 3 * partition_.shard_count()) std::this_thread::yield();
      server_.RollBack(Generation{2});
      server_.ReleaseReads();
    });
  };
  ASSERT_EQ(Run({.before_step = before_step}).value(), Trainer::Ending::kFinished);
  other.join();
  EXPECT_THAT(model_.evaluated, ElementsAre(1.0f / 8, 1.0f / 64));
  EXPECT_EQ(Done().counters().rollbacks(), 1);
}

TEST_F(TrainerTest, ARollbackDuringTheWaitForOtherWorkersIsFollowed) {
  server_.set_by_round();
  server_.set_others({WorkerId{2}});
  std::thread other;
  const auto before_step = [&](int asked) {
    if (asked == 4) server_.SaveCheckpoint();
    if (asked != 5) return;
    other = std::thread([this] {
      while (server_.pushes().size() < 6 * partition_.shard_count()) std::this_thread::yield();
      server_.RollBack(Generation{2});
      server_.set_others({});
    });
  };
  ASSERT_EQ(Run({.before_step = before_step, .output = output_}).value(),
            Trainer::Ending::kFinished);
  other.join();
  EXPECT_EQ(Done().counters().rollbacks(), 1);
  EXPECT_THAT(OutputTensors(), ElementsAre("b [4]: 0.015625 0.03125 0.046875 0.0625", ::testing::_,
                                           "w [2, 2]: 0.015625 0.03125 0.046875 0.0625"));
}

TEST_F(TrainerTest, AWorkerThatCannotFollowARollbackEnds) {
  server_.set_by_round();
  const auto before_step = [this](int asked) {
    if (asked == 1) server_.SaveCheckpoint();
    if (asked != 4) return;
    server_.FailJoins({absl::FailedPreconditionError("a newer process has this number"),
                       absl::AlreadyExistsError("worker 0: is in use")});
    server_.RollBack(Generation{2});
  };
  EXPECT_EQ(Run({.before_step = before_step}).status(),
            absl::AlreadyExistsError("server 0 (in process): worker 0: is in use"));
  EXPECT_THAT(Events(WorkerEvent::kDone), SizeIs(0));
}

TEST_F(TrainerTest, AStopEndsTheDelayOfAStep) {
  for (const uint32_t local_steps : {1, 2}) {
    EXPECT_EQ(Run({.local = {.count = local_steps}, .delay = absl::Hours(1)}).value(),
              Trainer::Ending::kStopped);
  }
}

TEST_F(TrainerTest, AStopDuringJoinEndsTheRunWithoutAJoin) {
  transport_.Mute(ServerId{0}, true);
  ASSERT_EQ(Run({.stop_after = 0,
                 .stop_before_join = true,
                 .state_dir = state_dir_,
                 .loss_scaling = LossScaling{}})
                .value(),
            Trainer::Ending::kStopped);
  EXPECT_THAT(Events(WorkerEvent::kJoined), SizeIs(0));
  EXPECT_EQ(Done().steps(), 0);
  EXPECT_EQ(server_.leave_count(), 0);
  EXPECT_THAT(SavedSteps(), SizeIs(0));
  EXPECT_FALSE(std::filesystem::exists(LossScalePathOf(0)));
}

TEST(StopwatchTest, ItCountsOnlyWhileItRuns) {
  ManualClock clock;
  Stopwatch watch(clock);
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(watch.elapsed(), absl::ZeroDuration());
  watch.Start();
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(watch.elapsed(), absl::Seconds(2));
  watch.Stop();
  clock.Advance(absl::Seconds(30));
  EXPECT_EQ(watch.elapsed(), absl::Seconds(2));
  watch.Start();
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(watch.elapsed(), absl::Seconds(3));
}

}  // namespace
}  // namespace thinwire
