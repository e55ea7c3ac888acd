#include "experiments/cluster/run_recorder.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <variant>

#include "client/replica/shard_values.h"
#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "common/codec/payload.h"
#include "common/files/crc32c.h"
#include "server/core/update/gradient_noise.h"

namespace thinwire::lab {
namespace {

// The parameters of a whole model.
struct Model {
  std::vector<std::vector<float>> values;  // by tensor
  std::vector<std::span<float>> tensors;
};

// VALUES is Shard::masters or Shard::averages.
std::shared_ptr<Model> CopyModel(const Partition& partition,
                                 const std::vector<const Shard*>& shards,
                                 std::span<const float> (Shard::*values)() const) {
  auto model = std::make_shared<Model>();
  for (const TensorShape& tensor : partition.tensors()) {
    model->values.emplace_back(tensor.value_count());
  }
  model->tensors.assign(model->values.begin(), model->values.end());
  for (uint32_t s = 0; s < shards.size(); ++s) {
    client::Scatter((shards[s]->*values)(), partition.segments(ShardId{s}), model->tensors);
  }
  return model;
}

// Returns the number of values in PAYLOAD: all of them, or the entries of a sparse one.
uint64_t ValueCount(const CheckedPayload& payload) {
  return PayloadIsSparse(payload) ? payload.entries().head().entry_count : payload.count();
}

}  // namespace

uint32_t ParametersCrc(std::span<const TensorShape> shapes, Tensors parameters) {
  std::vector<size_t> order(shapes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return shapes[i].name; });
  uint32_t crc = 0;
  for (const size_t i : order) crc = Crc32c(std::as_bytes(parameters[i]), crc);
  return crc;
}

RunRecorder::RunRecorder(const Plan& plan, const Partition& partition,
                         std::vector<const Shard*> shards, std::function<absl::Duration()> now,
                         TaskPool& pool)
    : plan_(plan),
      partition_(partition),
      shards_(std::move(shards)),
      now_(std::move(now)),
      pool_(pool),
      workers_(plan.worker_count),
      sent_values_(partition.shard_count()),
      accepted_(1) {}

void RunRecorder::Watch(std::vector<const Shard*> shards) {
  shards_ = std::move(shards);
  for (WorkerTimes& times : workers_) times.began.reset();
}

std::future<absl::StatusOr<TestScore>> RunRecorder::Test() {
  return pool_.Submit<absl::StatusOr<TestScore>>(
      [model = CopyModel(partition_, shards_, &Shard::averages)](LearningTask& task) {
        return task.Test(model->tensors);
      });
}

void RunRecorder::GoBack(Version version) {
  const auto [examples, pushes] = accepted_[version.value];
  accepted_.resize(version.value + 1);
  result_.set_examples(examples);
  result_.set_updates(version.value);
  result_.clear_staleness();
  if (pushes > 0) (*result_.mutable_staleness())[0] = pushes;
  due_.reset();
}

void RunRecorder::Began(WorkerId worker, absl::Duration time) {
  WorkerTimes& times = workers_[worker.value];
  if (times.began.has_value()) {
    step_seconds_.push_back(static_cast<float>(absl::ToDoubleSeconds(now_() - *times.began)));
  }
  times.began = now_();
  ComputesOn(worker, time);
}

void RunRecorder::Computed(const GradientResult& gradient) {
  if (trial_) return;
  loss_sum_ += gradient.loss_sum;
  loss_examples_ += gradient.examples;
}

void RunRecorder::Applied(ShardId shard, const Event& event, const Effects& effects) {
  const auto* push = std::get_if<PushEvent>(&event);
  if (push != nullptr && push->examples > 0) {
    if (push->worker == WorkerId{0}) sent_values_[shard.value] = ValueCount(push->payload);
    const Judgement& judgement = *effects.judgement;
    if (shard == ShardId{0} && judgement.verdict == Verdict::kAccept) {
      result_.set_examples(result_.examples() + push->examples);
      ++(*result_.mutable_staleness())[judgement.staleness];
    }
    if (judgement.verdict == Verdict::kLate) result_.set_late_pushes(result_.late_pushes() + 1);
    if (judgement.dropped) result_.set_dropped_pushes(result_.dropped_pushes() + 1);
  }
  const Version version = shards_[0]->version();
  if (shard == ShardId{0} && version.value > result_.updates()) {
    result_.set_updates(version.value);
    if (const auto fresh = result_.staleness().find(0); fresh != result_.staleness().end()) {
      accepted_.resize(version.value);
      accepted_.emplace_back(result_.examples(), fresh->second);
    }
    const auto points = static_cast<uint64_t>(result_.point_size());
    const bool reached = result_.examples() * plan_.tests >= plan_.examples * (points + 1);
    const bool due = reached && points + 1 < plan_.tests && !trial_;
    if (due && !due_.has_value()) due_ = version;
  }
  const auto has_updates = [this](const Shard* s) { return s->version() >= *due_; };
  if (due_.has_value() && std::ranges::all_of(shards_, has_updates)) RecordPoint(now_());
}

void RunRecorder::Announced(const RuleEvent& rule) {
  RuleChange& change = *result_.add_rule_change();
  change.set_step(rule.from.value);
  change.set_seconds(absl::ToDoubleSeconds(now_()));
  if (rule.rule.fold == Fold::kRound) {
    change.set_backup(rule.rule.workers - rule.rule.quorum);
  } else {
    change.set_slack(rule.rule.slack);
  }
}

void RunRecorder::RecordPoint(absl::Duration when) {
  due_.reset();
  RunResult::Point& point = *result_.add_point();
  point.set_seconds(absl::ToDoubleSeconds(when));
  point.set_step(plan_.finished_steps().value);
  point.set_examples(result_.examples());
  point.set_updates(result_.updates());
  point.set_push_bytes(result_.push_bytes());
  point.set_pull_bytes(result_.pull_bytes());
  if (loss_examples_ > 0) {
    point.set_train_loss(std::exchange(loss_sum_, 0) /
                         static_cast<double>(std::exchange(loss_examples_, 0)));
  }
  std::vector<NoiseEstimate> noise;
  for (const Shard* shard : shards_) noise.push_back(shard->noise());
  if (const auto scale = SumOfNoise(noise).scale()) point.set_noise_scale(*scale);
  tests_.push_back(Test());
}

void RunRecorder::Finished(WorkerId worker) { workers_[worker.value].finished = now_(); }

double RunRecorder::done() const {
  if (plan_.examples == 0) return 0;
  return std::min(1.0,
                  static_cast<double>(result_.examples()) / static_cast<double>(plan_.examples));
}

absl::StatusOr<RunResult> RunRecorder::Finish() {
  absl::Duration end;
  double busy = 0;
  for (const WorkerTimes& times : workers_) {
    end = std::max(end, times.finished);
    busy += absl::FDivDuration(times.computed, times.finished);
  }
  RecordPoint(end);
  result_.set_seconds(absl::ToDoubleSeconds(end));
  result_.set_median_step_seconds(Median(step_seconds_));
  result_.set_steps(plan_.finished_steps().value);
  result_.set_sent_values(std::accumulate(sent_values_.begin(), sent_values_.end(), uint64_t{0}));
  result_.set_model_values(partition_.value_count());
  result_.set_busy(busy / plan_.worker_count);
  result_.set_parameters_crc(ParametersCrc(
      partition_.tensors(), CopyModel(partition_, shards_, &Shard::masters)->tensors));
  for (size_t i = 0; i < tests_.size(); ++i) {
    ASSIGN_OR_RETURN(const TestScore test, tests_[i].get());
    RunResult::Point& point = *result_.mutable_point(static_cast<int>(i));
    point.set_test_loss(test.loss);
    if (test.accuracy.has_value()) point.set_test_accuracy(*test.accuracy);
  }
  return result_;
}

}  // namespace thinwire::lab
