#include "sim/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "sim/faults.h"

namespace thinwire::sim {
namespace {

constexpr uint32_t kWorkers = 4;
constexpr Step kLast{12};
constexpr uint32_t kExamples = 16;
constexpr float kRate = 0.5;
constexpr uint64_t kDataExamples = 1600;
constexpr uint64_t kRow = 8;  // values
constexpr uint32_t kBatch = 4;
constexpr uint64_t kEpochs = 2;

using Masters = std::map<std::string, std::vector<float>>;

// Returns element I of WORKER's gradient at STEP: a small binary fraction, so that sums are exact in
// any order.
float GradientAt(WorkerId worker, Step step, size_t i) {
  return 0.125f * static_cast<float>((i * 7 + worker.value * 3 + step.value) % 32) - 2.0f;
}

// Each worker's step takes another time.
VirtualTask Task() {
  VirtualTask task;
  task.tensors = {{"w1", {100, 80}}, {"b1", {80}}, {"w2", {80, 60}}, {"b2", {60}}};
  for (const TensorShape& tensor : task.tensors) {
    std::vector<float>& values = task.initial.emplace_back(tensor.value_count());
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.25f * static_cast<float>(i % 13);
  }
  task.last = kLast;
  task.gradient = [](const VirtualStep& step, auto& gradient) {
    for (std::vector<float>& tensor : gradient) {
      for (size_t i = 0; i < tensor.size(); ++i) tensor[i] = GradientAt(step.worker, step.step, i);
    }
    return kExamples;
  };
  task.time = [](const VirtualStep& step) {
    return absl::Milliseconds(100 + 7 * step.worker.value + 3 * (step.step.value % 5));
  };
  return task;
}

JobSpec Spec(const Rule& rule, Durability durability) {
  JobSpec spec;
  spec.rule = rule;
  spec.server_count = 2;
  spec.shard_size = kLeastShardSize;
  spec.schedule.learning_rate = kRate;
  spec.recovery.durability = durability;
  spec.recovery.checkpoint_interval = absl::Milliseconds(300);
  return spec;
}

// Returns the parameters after COUNT(w, t) pushes of worker w at each step t before LAST, each with
// the weight of one push in SIZE.
Masters Expected(float size, const std::function<int(WorkerId, Step)>& count, Step last = kLast) {
  const VirtualTask task = Task();
  Masters masters;
  for (size_t t = 0; t < task.tensors.size(); ++t) {
    std::vector<float> values = task.initial[t];
    for (uint32_t w = 0; w < kWorkers; ++w) {
      for (Step step; step < last; step = step + 1) {
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] -= kRate / size * static_cast<float>(count(WorkerId{w}, step)) *
                       GradientAt(WorkerId{w}, step, i);
        }
      }
    }
    masters[task.tensors[t].name] = values;
  }
  return masters;
}

class ClusterTest : public ::testing::TestWithParam<std::tuple<std::string, Durability>> {
 protected:
  Rule rule() const {
    const std::string& mode = std::get<0>(GetParam());
    if (mode == "sync") return Rule::Sync(kWorkers);
    if (mode == "backup") return Rule::Backup(kWorkers, 1);
    Rule rule = mode == "ssp" ? Rule::Ssp(kWorkers, 3) : Rule::Async(kWorkers);
    if (mode == "delayed") rule = Rule::Sync(kWorkers);
    rule.in_flight = mode == "delayed" ? 1 : 4;
    return rule;
  }
  Durability durability() const { return std::get<1>(GetParam()); }
};

TEST_P(ClusterTest, EveryGradientIsAppliedOnce) {
  Cluster cluster(Spec(rule(), durability()), Task());
  cluster.StartAll();
  ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(5))) << cluster.DescribeWorkers();
  EXPECT_EQ(cluster.ledger().Close(), "");
  const bool by_round = rule().fold == Fold::kRound;
  const Masters masters = cluster.Masters();
  if (rule().quorum == kWorkers || !by_round) {
    EXPECT_EQ(masters, Expected(by_round ? kWorkers : 1, [](WorkerId, Step) { return 1; }));
  }
}

TEST_P(ClusterTest, TheSameCallsGiveTheSameRun) {
  absl::Duration times[2];
  Masters masters[2];
  for (int run = 0; run < 2; ++run) {
    Cluster cluster(Spec(rule(), durability()), Task());
    cluster.StartAll();
    cluster.RunFor(absl::Milliseconds(700));
    cluster.network().Break(WorkerId{1}, ServerId{1});
    ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(5))) << cluster.DescribeWorkers();
    times[run] = cluster.time().elapsed();
    masters[run] = cluster.Masters();
  }
  EXPECT_EQ(times[0], times[1]);
  EXPECT_EQ(masters[0], masters[1]);
}

// Runs a cluster with the faults of SEED. Returns its parameters, or nothing after a failure.
std::optional<Masters> RunWithFaults(const JobSpec& spec, uint64_t seed, bool kills_workers) {
  VirtualTask task = Task();
  // Otherwise, after a rollback, some workers would repeat their steps without those that have left.
  task.stays = !kills_workers;
  Cluster cluster(spec, task, {.seed = seed});
  cluster.StartAll();
  Faults faults(cluster, spec, seed, {.kills_workers = kills_workers});
  const absl::Status injected = faults.Inject(absl::Seconds(6));
  EXPECT_TRUE(injected.ok()) << injected;
  const bool finished = cluster.RunUntilFinished(absl::Minutes(20));
  EXPECT_TRUE(finished) << cluster.DescribeWorkers() << cluster.failure(ServerId{0}) << "; "
                        << cluster.failure(ServerId{1});
  EXPECT_EQ(cluster.ledger().Close(), "");
  if (!finished) return std::nullopt;
  return cluster.Masters();
}

TEST_P(ClusterTest, EveryGradientIsAppliedOnceWithFaults) {
  const JobSpec spec = Spec(rule(), durability());
  const bool by_round = rule().fold == Fold::kRound;
  // By push, a server goes on alone from its checkpoint, so the pushes since are lost.
  const bool loses_pushes = durability() == Durability::kCheckpoint && !by_round;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const std::optional<Masters> masters = RunWithFaults(spec, seed, /*kills_workers=*/false);
    if (!masters.has_value()) return;
    if ((rule().quorum != kWorkers && by_round) || loses_pushes) continue;
    EXPECT_EQ(*masters, Expected(by_round ? kWorkers : 1, [](WorkerId, Step) { return 1; }));
  }
}

// An example's row of the only tensor is its gradient, so in modes that update by push the parameters
// count how often each example was applied.
VirtualTask DataTask() {
  VirtualTask task = Task();
  task.tensors = {{"w", {kDataExamples, kRow}}};
  task.initial = {std::vector<float>(kDataExamples * kRow)};
  task.data = {
      .example_count = kDataExamples, .workers = kWorkers, .batch_size = kBatch, .epochs = kEpochs};
  task.gradient = [](const VirtualStep& step, auto& gradient) {
    for (const uint32_t example : step.examples) {
      std::fill_n(gradient[0].begin() + example * kRow, kRow, 1.0f);
    }
    return static_cast<uint32_t>(step.examples.size());
  };
  return task;
}

// Returns how often each example was pushed by the first WORKERS workers.
std::vector<uint64_t> PushCounts(const Cluster& cluster, uint32_t workers) {
  std::vector<uint64_t> counts(kDataExamples);
  for (uint32_t w = 0; w < workers; ++w) {
    for (const auto& [step, examples] : cluster.pushed(WorkerId{w})) {
      for (const uint32_t example : examples) ++counts[example];
    }
  }
  return counts;
}

// Returns a text about the examples that were not pushed once in every epoch, or "". MAY_REPEAT:
// more often is right, too.
std::string WronglyPushed(const Cluster& cluster, uint32_t workers, bool may_repeat = false) {
  const std::vector<uint64_t> counts = PushCounts(cluster, workers);
  const auto is_wrong = [&](uint64_t n) { return may_repeat ? n < kEpochs : n != kEpochs; };
  const auto wrong = std::ranges::count_if(counts, is_wrong);
  const auto first = std::ranges::find_if(counts, is_wrong);
  if (wrong == 0) return "";
  return absl::StrCat(wrong, " examples; example ", first - counts.begin(), " was pushed ", *first,
                      " times");
}

// The lead deals the examples. It is killed and started again like the other servers.
TEST_P(ClusterTest, EveryExampleOfEveryEpochIsPushedOnce) {
  if (rule().mode() == "backup") GTEST_SKIP() << "late workers skip batches";
  const JobSpec spec = Spec(rule(), durability());
  for (uint64_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(seed);
    VirtualTask task = DataTask();
    task.stays = true;
    Cluster cluster(spec, task, {.seed = seed});
    cluster.StartAll();
    Faults faults(cluster, spec, seed, {});
    ASSERT_TRUE(faults.Inject(absl::Seconds(6)).ok());
    ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(20))) << cluster.DescribeWorkers();
    EXPECT_EQ(cluster.ledger().Close(), "");
    EXPECT_EQ(WronglyPushed(cluster, kWorkers), "");
    if (rule().fold == Fold::kRound || durability() == Durability::kCheckpoint) continue;
    const std::vector<float> applied(kDataExamples * kRow, -kRate * kEpochs);
    EXPECT_EQ(cluster.Masters().at("w"), applied);
  }
}

// Asks the lead for COUNT workers until it confirms the change.
void Scale(Cluster& cluster, uint32_t count) {
  ScaleRequest request;
  request.set_job("train");
  request.set_workers(count);
  std::optional<absl::StatusOr<ScaleReply>> reply;
  do {
    if (cluster.job(ServerId{0}) == nullptr) {
      ASSERT_TRUE(cluster.StartServer(ServerId{0}).ok());
    }
    reply.reset();
    cluster.job(ServerId{0})->Call(request, [&](auto result) { reply = std::move(result); });
    cluster.RunFor(absl::Milliseconds(300));
  } while (!reply.has_value() || absl::IsUnavailable(reply->status()));
  ASSERT_TRUE(reply->ok()) << reply->status();
}

// The lead deals the examples anew when the members change, and is killed between the changes.
TEST_P(ClusterTest, EveryExampleIsPushedOnceAlthoughTheMembersChange) {
  if (rule().mode() == "backup") GTEST_SKIP() << "late workers skip batches";
  if (durability() == Durability::kNone) GTEST_SKIP() << "no server comes back";
  JobSpec spec = Spec(rule(), durability());
  spec.rule.max_workers = kWorkers + 2;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(seed);
    VirtualTask task = DataTask();
    task.stays = true;
    Cluster cluster(spec, task, {.seed = seed});
    Faults faults(cluster, spec, seed, {});
    cluster.StartAll();
    cluster.RunFor(absl::Milliseconds(500));
    Scale(cluster, kWorkers + 2);
    for (uint32_t w = kWorkers; w < kWorkers + 2; ++w) cluster.StartWorker(WorkerId{w});
    ASSERT_TRUE(faults.Inject(absl::Seconds(1)).ok());
    Scale(cluster, kWorkers - 1);
    ASSERT_TRUE(faults.Inject(absl::Seconds(3)).ok());
    ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(20))) << cluster.DescribeWorkers();
    EXPECT_EQ(cluster.ledger().Close(), "");
    // A lead that goes back alone has forgotten what a worker that has left since then has finished,
    // so it deals these examples again (docs/training.md).
    const bool goes_back_alone =
        rule().fold != Fold::kRound && durability() == Durability::kCheckpoint;
    EXPECT_EQ(WronglyPushed(cluster, spec.rule.max_workers, goes_back_alone), "");
    if (rule().fold == Fold::kRound || durability() == Durability::kCheckpoint) continue;
    const std::vector<float> applied(kDataExamples * kRow, -kRate * kEpochs);
    EXPECT_EQ(cluster.Masters().at("w"), applied);
  }
}

TEST_P(ClusterTest, EveryWorkerFinishesAlthoughSomeAreKilled) {
  const JobSpec spec = Spec(rule(), durability());
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    if (!RunWithFaults(spec, seed, /*kills_workers=*/true).has_value()) return;
  }
}

JobSpec SpecOfJoins() {
  JobSpec spec = Spec(Rule::Sync(kWorkers), Durability::kNone);
  spec.lease = absl::Seconds(2);
  return spec;
}

// The lead gives the number of a worker whose lease has ended to a new process before the tick that
// would expire it, and cannot announce the process to the other server before it ends too.
TEST(JoinTest, AWorkerThatEndsDuringItsJoinHoldsNobodyBack) {
  const JobSpec spec = SpecOfJoins();
  constexpr WorkerId kEnds{3};
  for (int64_t end = 500; end < 700; end += 40) {
    for (int64_t silence = 1900; silence < 2100; silence += 20) {
      SCOPED_TRACE(absl::StrCat("ends at ", end, " ms for ", silence, " ms"));
      Cluster cluster(spec, Task());
      cluster.StartAll();
      cluster.time().At(absl::Milliseconds(end), [&] {
        cluster.network().CutFromLead(ServerId{1}, true);
        cluster.KillWorker(kEnds);
      });
      cluster.time().At(absl::Milliseconds(end + silence), [&] { cluster.StartWorker(kEnds); });
      cluster.RunFor(absl::Milliseconds(end + silence + 1000));
      cluster.KillWorker(kEnds);
      cluster.network().CutFromLead(ServerId{1}, false);
      ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(5))) << cluster.DescribeWorkers();
      EXPECT_EQ(cluster.ledger().Close(), "");
    }
  }
}

// The lead has given the number of a suspended worker to a new process, which ends before it can join
// the shards. Meanwhile the suspended process continues and pushes.
TEST(JoinTest, AFencedWorkerHoldsNobodyBack) {
  const JobSpec spec = SpecOfJoins();
  constexpr WorkerId kSuspended{3};
  for (int64_t time = 500; time < 700; time += 20) {
    SCOPED_TRACE(time);
    Cluster cluster(spec, Task());
    cluster.StartAll();
    cluster.RunFor(absl::Milliseconds(time));
    cluster.network().CutFromLead(ServerId{1}, true);
    cluster.SuspendWorker(kSuspended, absl::Milliseconds(2600));
    cluster.StartWorker(kSuspended);
    cluster.RunFor(absl::Milliseconds(2900));
    cluster.KillWorker(kSuspended);  // the new process
    cluster.network().CutFromLead(ServerId{1}, false);
    ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(5))) << cluster.DescribeWorkers();
    EXPECT_EQ(cluster.ledger().Close(), "");
  }
}

// The lead gives the number of a lost worker to a new process, and cannot announce the process to the
// other server at once. Meanwhile the others train.
TEST(JoinTest, TheStepsDuringAnAdmissionAreDealtAnew) {
  const JobSpec spec = SpecOfJoins();
  constexpr WorkerId kLost{3};
  for (int64_t delay = 200; delay < 1200; delay += 100) {
    SCOPED_TRACE(delay);
    VirtualTask task = DataTask();
    task.stays = true;
    Cluster cluster(spec, task);
    cluster.StartAll();
    cluster.RunFor(absl::Milliseconds(600));
    cluster.KillWorker(kLost);
    cluster.network().CutFromLead(ServerId{1}, true);
    cluster.StartWorker(kLost);
    cluster.RunFor(spec.lease + absl::Milliseconds(delay));
    cluster.network().CutFromLead(ServerId{1}, false);
    ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(5))) << cluster.DescribeWorkers();
    uint64_t lost = 0;
    for (const uint64_t count : PushCounts(cluster, kWorkers)) {
      lost += kEpochs - std::min(count, kEpochs);
    }
    EXPECT_LE(lost, 2 * kBatch) << "the examples of one or two steps (docs/training.md)";
  }
}

// A server that was started again hears of no worker for a lease. Training then begins as at the start
// of the job, although the workers have pushes without verdict.
TEST(ReturnTest, WorkersThatComeBackAfterTheirLeasesContinue) {
  for (const Rule& rule : {Rule::Sync(kWorkers), Rule::Ssp(kWorkers, 3), Rule::Async(kWorkers)}) {
    SCOPED_TRACE(rule.mode());
    JobSpec spec = Spec(rule, Durability::kLog);
    spec.lease = absl::Seconds(2);
    Cluster cluster(spec, Task());
    const auto cut = [&](bool cut) {
      for (uint32_t w = 0; w < kWorkers; ++w) cluster.network().Cut(WorkerId{w}, ServerId{0}, cut);
    };
    cluster.StartAll();
    cluster.RunFor(absl::Milliseconds(500));
    cut(true);
    cluster.KillServer(ServerId{0}, /*power_loss=*/true);
    ASSERT_TRUE(cluster.StartServer(ServerId{0}).ok());
    cluster.RunFor(absl::Seconds(4));
    cut(false);
    ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(5))) << cluster.DescribeWorkers();
    EXPECT_EQ(cluster.ledger().Close(), "");
    // By round, the end of all leases has closed rounds without some of their gradients.
    if (rule.fold == Fold::kRound) continue;
    EXPECT_EQ(cluster.Masters(), Expected(1, [](WorkerId, Step) { return 1; }));
  }
}

// A server that stops in order saves its state, so nothing is lost although it goes on alone.
TEST_P(ClusterTest, EveryGradientIsAppliedOnceAlthoughServersAreDrained) {
  if (durability() == Durability::kNone) GTEST_SKIP() << "no server comes back";
  const JobSpec spec = Spec(rule(), durability());
  const bool by_round = rule().fold == Fold::kRound;
  for (int64_t time = 500; time < 1000; time += 70) {
    SCOPED_TRACE(time);
    VirtualTask task = Task();
    task.stays = true;
    Cluster cluster(spec, task);
    cluster.StartAll();
    cluster.RunFor(absl::Milliseconds(time));
    for (const ServerId server : {ServerId{1}, ServerId{0}}) {
      cluster.DrainServer(server);
      cluster.RunFor(absl::Milliseconds(300));
      ASSERT_EQ(cluster.job(server), nullptr);
      ASSERT_TRUE(cluster.StartServer(server).ok());
      cluster.RunFor(absl::Milliseconds(200));
    }
    ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(5))) << cluster.DescribeWorkers();
    EXPECT_EQ(cluster.ledger().Close(), "");
    if (rule().quorum != kWorkers && by_round) continue;
    EXPECT_EQ(cluster.Masters(),
              Expected(by_round ? kWorkers : 1, [](WorkerId, Step) { return 1; }));
  }
}

TEST_P(ClusterTest, WorkersNameAServerThatIsLostForGood) {
  JobSpec spec = Spec(rule(), durability());
  spec.recovery.server_return = absl::Seconds(30);
  const absl::Duration patience =
      durability() == Durability::kNone ? spec.silence : spec.recovery.server_return;
  for (uint32_t lost = 0; lost < spec.server_count; ++lost) {
    SCOPED_TRACE(lost);
    Cluster cluster(spec, Task());
    cluster.StartAll();
    cluster.RunFor(absl::Milliseconds(700));
    cluster.KillServer(ServerId{lost}, /*power_loss=*/true);
    ASSERT_TRUE(cluster.RunUntilEnded(patience + absl::Seconds(5))) << cluster.DescribeWorkers();
    for (uint32_t w = 0; w < kWorkers; ++w) {
      const absl::Status& failure = cluster.worker(WorkerId{w})->failure();
      EXPECT_TRUE(absl::IsUnavailable(failure) || absl::IsDeadlineExceeded(failure)) << failure;
      EXPECT_THAT(std::string(failure.message()),
                  ::testing::HasSubstr(absl::StrCat("server ", lost, " ")));
    }
    EXPECT_EQ(cluster.ledger().Close(), "");
  }
}

TEST_P(ClusterTest, TrainingBeginsWithoutAWorkerThatStartsLate) {
  constexpr WorkerId kLate{3};
  JobSpec spec = Spec(rule(), durability());
  spec.start_timeout = absl::Seconds(10);
  Cluster cluster(spec, Task());
  cluster.StartAll();
  cluster.KillWorker(kLate);
  cluster.RunFor(absl::Seconds(9));
  EXPECT_EQ(cluster.ledger().counts().accepted, 0u);
  cluster.RunFor(absl::Milliseconds(1300));
  EXPECT_GT(cluster.ledger().counts().accepted, 0u);
  cluster.StartWorker(kLate);
  ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(5))) << cluster.DescribeWorkers();
  EXPECT_EQ(cluster.ledger().Close(), "");
}

// Makes five calls of the lead and keeps their replies.
class PendingCalls {
 public:
  PendingCalls(Job& lead, WorkerId leaver, Incarnation incarnation) {
    LeaveRequest leave;
    leave.set_worker(leaver.value);
    leave.set_incarnation(incarnation.value);
    lead.Call(leave, Callback<LeaveReply>());
    ScaleRequest scale;
    scale.set_workers(kWorkers - 1);
    lead.Call(scale, Callback<ScaleReply>());
    DrainRequest drain;
    drain.set_worker(0);
    lead.Call(drain, Callback<DrainReply>());
    lead.Call(SaveCheckpointRequest(), Callback<SaveCheckpointReply>());
    SetModeRequest mode;
    mode.set_force(true);
    mode.mutable_consistency()->set_mode(Consistency::Mode::async);
    lead.Call(mode, Callback<SetModeReply>());
  }

  // Returns whether each callback was called or destroyed, so that its caller has an answer.
  bool ended() const { return held_.use_count() == 1; }
  // Returns whether a request was confirmed.
  bool confirmed() const { return *held_; }

 private:
  template <typename Reply>
  Job::Done<Reply> Callback() {
    return [held = held_](const absl::StatusOr<Reply>& reply) { *held |= reply.ok(); };
  }

  const std::shared_ptr<bool> held_ = std::make_shared<bool>(false);
};

// A process whose log fails ends. Calls that wait for a record end with it, and nothing that was not
// recorded is confirmed.
// Returns the mean time of a step of two workers with RULE that compute for 20 ms each, at a distance
// of ROUND_TRIP from their server.
absl::Duration StepTime(const Rule& rule, absl::Duration round_trip) {
  absl::Duration ends[2];
  constexpr uint64_t kFirst = 40;
  constexpr uint64_t kSteps = 100;
  for (const uint64_t i : {0, 1}) {
    VirtualTask task = Task();
    task.last = Step{kFirst + i * kSteps};
    task.time = [](const VirtualStep&) { return absl::Milliseconds(20); };
    JobSpec spec = Spec(rule, Durability::kNone);
    spec.server_count = 1;
    const LinkSpec link = {.latency = round_trip / 4};
    Cluster cluster(spec, task, {.links = {.worker = link, .server = link}});
    cluster.StartAll();
    EXPECT_TRUE(cluster.RunUntilFinished(absl::Minutes(5))) << cluster.DescribeWorkers();
    EXPECT_EQ(cluster.ledger().Close(), "");
    ends[i] = cluster.time().elapsed();
  }
  return (ends[1] - ends[0]) / static_cast<int64_t>(kSteps);
}

// Virtual time without any cost of a message, so these times are those of the rule alone.
TEST(DistanceTest, StepsInFlightHideTheRoundTrip) {
  const auto with = [](Rule rule, uint32_t in_flight) {
    rule.in_flight = in_flight;
    return rule;
  };
  constexpr absl::Duration kCompute = absl::Milliseconds(20);
  for (const int64_t ms : {1, 20, 100, 200}) {
    const absl::Duration round_trip = absl::Milliseconds(ms);
    const auto time = [&](const Rule& rule) {
      const absl::Duration step = StepTime(rule, round_trip);
      std::cout << "round trip " << ms << " ms, " << rule << ": " << step << " per step\n";
      return step;
    };
    for (const Rule& rule : {Rule::Sync(2), Rule::Ssp(2, 4), Rule::Async(2)}) {
      EXPECT_GE(time(rule), kCompute + round_trip);
    }
    // With k steps in flight, k + 1 steps take at most one round trip and one computation. In ssp,
    // the answer to a push may leave before the other worker's push arrives, which moves the
    // frontier.
    EXPECT_LE(time(with(Rule::Async(2), 4)), 1.1 * std::max(kCompute, (kCompute + round_trip) / 5));
    EXPECT_LE(time(with(Rule::Ssp(2, 4), 4)),
              1.1 * std::max(kCompute, (2 * kCompute + round_trip) / 5));
    EXPECT_LE(time(with(Rule::Async(2), 16)), 1.1 * kCompute);
    EXPECT_LE(time(with(Rule::Ssp(2, 16), 16)), 1.1 * kCompute);
    EXPECT_LE(time(with(Rule::Sync(2), 1)), 1.1 * std::max(kCompute, round_trip));
  }
}

// The verdicts of the worker that pushes first do not wait for the parameters.
TEST(MessageTest, TheSmallShardsOfAStepShareOneMessageToTheServerAndTwoBack) {
  for (const Durability durability : {Durability::kNone, Durability::kLog}) {
    VirtualTask task = Task();
    task.last = Step{100};
    JobSpec spec = Spec(Rule::Sync(2), durability);
    spec.server_count = 1;
    Cluster cluster(spec, task);
    uint64_t to_server = 0, to_workers = 0;
    cluster.network().WatchBytes([&](bool up, uint64_t) { ++(up ? to_server : to_workers); });
    cluster.StartAll();
    ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(5))) << cluster.DescribeWorkers();
    const uint64_t pushes = 2 * task.last.value;
    EXPECT_LE(to_server, pushes + 10) << "the start takes some messages";
    EXPECT_LE(to_workers, 2 * pushes + 10);
    EXPECT_EQ(cluster.ledger().Close(), "");
  }
}

TEST(LogFailureTest, CallsThatWaitForTheLogEnd) {
  const JobSpec spec = Spec(Rule::Sync(kWorkers), Durability::kLog);
  for (const bool full_disk : {false, true}) {
    SCOPED_TRACE(full_disk ? "full disk" : "failed flush");
    Cluster cluster(spec, Task());
    cluster.StartAll();
    cluster.RunFor(absl::Milliseconds(500));
    cluster.KillWorker(WorkerId{3});
    cluster.StartWorker(WorkerId{3});  // its Join waits for the end of the lease
    FaultyFiles& files = cluster.files(ServerId{0});
    full_disk ? files.SetFreeBytes(0) : files.FailFileFlushAt(1);
    const PendingCalls calls(*cluster.job(ServerId{0}), WorkerId{1},
                             cluster.worker(WorkerId{1})->incarnation());
    EXPECT_FALSE(calls.ended());
    cluster.RunFor(absl::Milliseconds(300));
    EXPECT_EQ(cluster.job(ServerId{0}), nullptr) << "the process has not ended";
    EXPECT_TRUE(calls.ended());
    EXPECT_FALSE(calls.confirmed());
    files.SetFreeBytes(uint64_t{1} << 40);
    ASSERT_TRUE(cluster.StartServer(ServerId{0}).ok());
    ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(5))) << cluster.DescribeWorkers();
    EXPECT_EQ(cluster.ledger().Close(), "");
  }
}

JobSpec AdaptiveSpecOfTrials() {
  JobSpec spec = Spec(Rule::Sync(kWorkers), Durability::kCheckpoint);
  spec.push.adaptive = {
      .arms = {{.codec = {.id = CodecId::kFp32}}, {.codec = {.id = CodecId::kBf16}}},
      .speculate_steps = 8,
      .continue_steps = 16};
  return spec;
}

VirtualTask AdaptiveTask() {
  VirtualTask task = Task();
  task.stays = true;
  task.data = {.example_count = 40 * kWorkers * kBatch,
               .workers = kWorkers,
               .batch_size = kBatch,
               .epochs = 1};
  task.trial_steps = 8;
  task.test = [](const VirtualStep& step) {
    return 0.5 + 0.001 * static_cast<double>(step.step.value);
  };
  return task;
}

// Trials send all processes back to snapshots, under a new generation with another codec.
TEST(AdaptiveTest, TrialsChangeNothingAlthoughServersAreKilled) {
  const JobSpec spec = AdaptiveSpecOfTrials();
  const VirtualTask task = AdaptiveTask();
  const std::string folder = ::testing::TempDir() + "/adaptive";
  for (const std::optional<ServerId> killed :
       {std::optional<ServerId>(), std::optional(ServerId{0}), std::optional(ServerId{1})}) {
    SCOPED_TRACE(killed.has_value() ? absl::StrCat("kills server ", killed->value)
                                    : "kills nobody");
    std::filesystem::remove_all(folder);
    Cluster cluster(spec, task, {.state_dir = folder});
    cluster.StartAll();
    cluster.RunFor(absl::Milliseconds(900));
    if (killed.has_value()) {
      cluster.KillServer(*killed, /*power_loss=*/true);
      ASSERT_TRUE(cluster.StartServer(*killed).ok());
    }
    ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(20))) << cluster.DescribeWorkers();
    EXPECT_EQ(cluster.ledger().Close(), "");
    EXPECT_EQ(cluster.ledger().counts().codecs, 2u);
    EXPECT_EQ(cluster.Masters(), Expected(
                                     kWorkers, [](WorkerId, Step) { return 1; }, Step{40}));
    std::optional<StatusReply> status;
    cluster.job(ServerId{0})->Call(StatusRequest(), [&](const absl::StatusOr<StatusReply>& reply) {
      status = reply.value();
    });
    cluster.RunFor(absl::Milliseconds(100));
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(status->precision_decisions_size(), 2);
  }
  std::filesystem::remove_all(folder);
}

// The other workers end the trial while worker 0, which tests it, is lost. They wait for the test.
TEST(AdaptiveTest, AnEvaluatorThatComesBackAtTheEndOfATrialTestsIt) {
  JobSpec spec = AdaptiveSpecOfTrials();
  spec.lease = absl::Seconds(2);
  const std::string folder = ::testing::TempDir() + "/evaluator";
  for (int64_t silence = 1800; silence < 4200; silence += 200) {
    SCOPED_TRACE(silence);
    std::filesystem::remove_all(folder);
    Cluster cluster(spec, AdaptiveTask(), {.state_dir = folder});
    cluster.StartAll();
    cluster.RunFor(absl::Milliseconds(500));
    cluster.KillWorker(WorkerId{0});
    cluster.RunFor(absl::Milliseconds(silence));
    cluster.StartWorker(WorkerId{0});
    ASSERT_TRUE(cluster.RunUntilFinished(absl::Minutes(20))) << cluster.DescribeWorkers();
    EXPECT_EQ(cluster.ledger().Close(), "");
  }
  std::filesystem::remove_all(folder);
}

std::string NameOf(const ::testing::TestParamInfo<ClusterTest::ParamType>& info) {
  const char* const names[] = {"None", "Checkpoint", "Log"};
  return std::get<0>(info.param) + names[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(
    Modes, ClusterTest,
    ::testing::Combine(::testing::Values("sync", "backup", "ssp", "async", "delayed"),
                       ::testing::Values(Durability::kNone, Durability::kCheckpoint,
                                         Durability::kLog)),
    NameOf);

}  // namespace
}  // namespace thinwire::sim
