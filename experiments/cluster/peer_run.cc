// RunPeers: training without servers. Every worker holds the parameters and applies the optimizer
// of the job itself. All workers receive the same sum of gradients, so their parameters and
// optimizer slots are equal bit for bit, and the simulation keeps one copy of them.
//
//   computing -> exchange (ring.h, gtopk_tree.h) -> update -> the next step, without a barrier
//
// The gradient of a worker with e of the E examples of a step is weighted by e / E before the
// exchange. The update is that of a server: the same optimizer and schedule, from the mean gradient
// of the examples.
#include <algorithm>
#include <bit>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/encode/gradient_clip.h"
#include "client/encode/push_schedule.h"
#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"
#include "common/model/partition.h"
#include "common/text/problems.h"
#include "common/time/virtual_time.h"
#include "experiments/cluster/codec_costs.h"
#include "experiments/cluster/compute_times.h"
#include "experiments/cluster/gtopk_tree.h"
#include "experiments/cluster/links.h"
#include "experiments/cluster/peer_exchange.h"
#include "experiments/cluster/ring.h"
#include "experiments/cluster/run.h"
#include "experiments/cluster/run_recorder.h"
#include "experiments/cluster/task_pool.h"
#include "kernels/arithmetic.h"
#include "kernels/finite.h"
#include "kernels/reductions.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"

namespace thinwire::lab {
namespace {

// Adds a problem unless HOLDS.
void Want(bool holds, std::string_view field, absl::string_view expected, Problems& problems) {
  if (!holds) {
    problems.Add(field, absl::StrCat("not supported without servers (expected ", expected, ")"));
  }
}

absl::Status CheckPeers(const RunSpec& spec) {
  const JobSpec& job = spec.job;
  Problems problems;
  Want(job.rule.mode() == "sync", "mode", "sync", problems);
  Want(job.pull_codec == CodecId::kFp32 && !job.publish.has_value(), "pull", "fp32", problems);
  Want(!job.sparse_updates.selection_density.has_value(), "gradient_selection", "none", problems);
  Want(!job.sparse_updates.lazy_slots, "lazy_slots", "false", problems);
  Want(!Traits(job.optimizer.kind).reads_norms, "optimizer", "not lars or lamb", problems);
  Want(job.optimizer.parameter_average == 0, "parameter_average", "0", problems);
  Want(job.clip_norm == 0, "clip_norm", "0", problems);
  Want(job.groups.empty(), "parameter_group", "none", problems);
  Want(!job.push.choose.has_value() && !job.push.adaptive.has_value(), "push", "one codec",
       problems);
  Want(job.push.residual_decay == 1, "residual_decay", "1", problems);
  Want(job.push.warmup.first_part == 0, "first_push_part", "0", problems);
  Want(!job.task.local.enabled(), "local_steps", "1", problems);
  Want(!job.schedule.grows_batch(), "schedule", "not noise_scale", problems);
  Want(job.recovery.durability == Durability::kNone, "durability", "none", problems);
  Want(!spec.machines.has_imposed_staleness(), "machines.imposed_staleness", "none", problems);
  const CodecSpec& push = job.push.codec;
  if (spec.machines.exchange() == Machines::Exchange::gtopk_tree) {
    Want(push.id == CodecId::kTopK && push.values == CodecId::kFp32, "push", "topk of fp32 values",
         problems);
    Want(job.push.error_feedback, "error_feedback", "true", problems);
    Want(std::has_single_bit(job.rule.workers), "workers", "a power of two in a gTop-k tree",
         problems);
  } else {
    Want(!job.push.correction.enabled, "momentum_correction", "false in a ring", problems);
    Want(push.id == CodecId::kFp32, "push", "fp32; machines.ring_format is the format of a ring",
         problems);
  }
  return problems.ToStatus();
}

CodecId RingCodec(Machines::RingFormat::Value format) {
  if (format == Machines::RingFormat::fp16) return CodecId::kFp16;
  if (format == Machines::RingFormat::int8) return CodecId::kInt8;
  return CodecId::kFp32;
}

// Returns one span of VALUES per tensor.
std::vector<std::span<float>> Split(std::span<float> values, std::span<const TensorShape> shapes) {
  std::vector<std::span<float>> tensors;
  for (const TensorShape& shape : shapes) {
    tensors.push_back(values.first(shape.value_count()));
    values = values.subspan(shape.value_count());
  }
  return tensors;
}

size_t ValueCount(std::span<const TensorShape> shapes) {
  size_t count = 0;
  for (const TensorShape& shape : shapes) count += shape.value_count();
  return count;
}

class PeerRun {
 public:
  PeerRun(const RunSpec& spec, const RunControl& control, TaskPool& pool, ComputeTimes times,
          const Optimizer& optimizer, const Schedule& schedule);

  // Makes the exchange of the job. Errors: InvalidArgument.
  absl::Status MakeExchange();
  absl::StatusOr<RunResult> Run();

 private:
  struct Worker {
    std::vector<std::span<float>> gradient;  // by tensor, in gradients_
    Step step;
    absl::Duration begin;  // of the step
    std::future<absl::StatusOr<GradientResult>> result;
  };
  struct Test {
    RunResult::Point* point;
    std::unique_ptr<std::vector<float>> parameters;
    std::future<absl::StatusOr<TestScore>> result;
  };

  void BeginStep(size_t worker);
  void EndStep(size_t worker);
  // Applies the update of STEP. Called when the first worker has its sum.
  absl::Status UpdateParameters(Step step);
  // Adds a point of the curves if the parameters are due for a test. Called when the last worker
  // has finished a step.
  void AddPoint();
  RunResult::Point Now() const;

  const RunSpec& spec_;
  const RunControl& control_;
  TaskPool& pool_;
  const ComputeTimes times_;
  const Optimizer& optimizer_;
  const Schedule& schedule_;
  const uint64_t planned_examples_;

  VirtualTime queue_;
  LinkModel network_;
  std::unique_ptr<PeerExchange> exchange_;
  std::vector<Worker> workers_;
  std::vector<std::vector<float>> gradients_;  // by worker
  std::vector<float> parameters_;
  std::vector<std::span<float>> parameter_tensors_;
  std::vector<std::vector<float>> slots_;
  std::vector<float> sum_;

  RunResult result_;
  absl::Status status_;
  uint64_t updated_steps_ = 0;  // steps whose sum is applied
  size_t ended_count_ = 0;      // workers that have ended the step `updated_steps_`
  uint64_t updates_ = 0;
  uint64_t examples_ = 0;
  double loss_sum_ = 0;         // since the last point
  uint64_t loss_examples_ = 0;  // since the last point
  absl::Duration computing_;    // of all workers
  std::vector<absl::Duration> step_times_;
  std::vector<Test> tests_;
};

// Computes the gradient of WORKER's STEP and clips it. A gradient with a value that is not finite
// counts as no examples, as at a worker of a parameter server.
absl::StatusOr<GradientResult> ComputeGradient(LearningTask& task, WorkerId worker, Step step,
                                               Tensors parameters, std::span<float> gradient,
                                               Tensors tensors, client::GradientClip clip) {
  ASSIGN_OR_RETURN(GradientResult result,
                   task.Gradient(worker, step, /*local_step=*/0, parameters, tensors));
  bool finite = result.examples > 0 && kernels::AllFinite(gradient);
  if (finite && clip.clips()) {
    clip.Begin();
    for (size_t t = 0; t < tensors.size(); ++t) {
      clip.Ready(static_cast<uint32_t>(t), kernels::SumOfSquares(tensors[t]));
    }
    finite = kernels::ScaleFinite(clip.factor(), gradient, gradient);
  }
  if (!finite) {
    result = {};
    std::ranges::fill(gradient, 0.0f);
  }
  return result;
}

PeerRun::PeerRun(const RunSpec& spec, const RunControl& control, TaskPool& pool, ComputeTimes times,
                 const Optimizer& optimizer, const Schedule& schedule)
    : spec_(spec),
      control_(control),
      pool_(pool),
      times_(std::move(times)),
      optimizer_(optimizer),
      schedule_(schedule),
      planned_examples_(pool.own().examples()),
      network_(std::vector<LinkSpec>(spec.job.rule.workers, LinkOf(spec.machines.worker_link())),
               queue_),
      workers_(spec.job.rule.workers),
      gradients_(workers_.size(), std::vector<float>(ValueCount(pool.own().tensors()))),
      parameters_(gradients_[0].size()),
      parameter_tensors_(Split(parameters_, pool.own().tensors())),
      slots_(static_cast<size_t>(optimizer.slot_count()), std::vector<float>(parameters_.size())),
      sum_(parameters_.size()) {
  for (size_t t = 0; t < parameter_tensors_.size(); ++t) {
    std::ranges::copy(pool_.own().initial(static_cast<uint32_t>(t)), parameter_tensors_[t].begin());
  }
  for (size_t w = 0; w < workers_.size(); ++w) {
    workers_[w].gradient = Split(gradients_[w], pool_.own().tensors());
  }
}

absl::Status PeerRun::MakeExchange() {
  const size_t value_count = parameters_.size();
  const size_t worker_count = workers_.size();
  const auto done = [this](size_t worker) { EndStep(worker); };
  if (spec_.machines.exchange() == Machines::Exchange::gtopk_tree) {
    ASSIGN_OR_RETURN(client::PushSchedule schedule,
                     client::PushSchedule::Make(spec_.job.push.codec, spec_.job.push.warmup,
                                                pool_.own().steps()));
    ASSIGN_OR_RETURN(
        const Partition partition,
        Partition::Make(pool_.own().tensors(), spec_.job.shard_size, spec_.job.server_count));
    exchange_ = std::make_unique<GtopkTree>(partition, worker_count, std::move(schedule),
                                            spec_.job.push.correction, CodecCosts(spec_.machines),
                                            queue_, network_, done);
    return absl::OkStatus();
  }
  if (value_count < worker_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers: more workers than values in a ring (expected at most ", value_count,
                     ", got ", worker_count, ")"));
  }
  const CodecId format = RingCodec(spec_.machines.ring_format());
  ASSIGN_OR_RETURN(auto codec, MakeCodec({.id = format}));
  exchange_ = std::make_unique<Ring>(value_count, worker_count, std::move(codec),
                                     CodecCosts(spec_.machines), queue_, network_, done);
  return absl::OkStatus();
}

void PeerRun::BeginStep(size_t w) {
  Worker& worker = workers_[w];
  if (worker.step.value == pool_.own().steps()) return;
  const WorkerId id{static_cast<uint32_t>(w)};
  const uint64_t passes = pool_.own().pass_count(id, worker.step);
  const absl::Duration computing =
      times_.OfJobStep(spec_.job, id, worker.step, passes, queue_.elapsed());
  worker.begin = queue_.elapsed();
  computing_ += computing;
  const client::GradientClip clip(spec_.job.push.gradient_clip,
                                  static_cast<uint32_t>(workers_.size()), worker.gradient.size());
  worker.result = pool_.Submit<absl::StatusOr<GradientResult>>(
      [this, w, step = worker.step, clip](LearningTask& task) {
        return ComputeGradient(task, WorkerId{static_cast<uint32_t>(w)}, step, parameter_tensors_,
                               gradients_[w], workers_[w].gradient, clip);
      });
  queue_.After(computing, [this, w] { exchange_->Begin(w); });
}

void PeerRun::EndStep(size_t w) {
  Worker& worker = workers_[w];
  if (!status_.ok()) return;
  if (worker.step.value == updated_steps_) {
    status_ = UpdateParameters(worker.step);
    if (!status_.ok()) return;
  }
  step_times_.push_back(queue_.elapsed() - worker.begin);
  ++worker.step;
  if (++ended_count_ == workers_.size()) {
    ended_count_ = 0;
    AddPoint();
    if (control_.progress != nullptr &&
        !control_.progress(static_cast<double>(updated_steps_) /
                           static_cast<double>(pool_.own().steps()))) {
      status_ = absl::CancelledError("the run was stopped");
    }
  }
  BeginStep(w);
}

absl::Status PeerRun::UpdateParameters(Step step) {
  std::vector<uint32_t> counts;
  uint64_t total = 0;
  for (Worker& worker : workers_) {
    ASSIGN_OR_RETURN(const GradientResult result, worker.result.get());
    counts.push_back(result.examples);
    total += result.examples;
    loss_sum_ += result.loss_sum;
  }
  loss_examples_ += total;
  ++updated_steps_;
  if (total == 0) return absl::OkStatus();
  ForEach(pool_, gradients_.size(), [&](size_t w) {
    const double weight = static_cast<double>(counts[w]) / static_cast<double>(total);
    kernels::ScaleFinite(static_cast<float>(weight), gradients_[w], gradients_[w]);
  });
  exchange_->Sum(step, gradients_, pool_, sum_);
  ++updates_;
  const Update update = {
      .learning_rate = static_cast<float>(schedule_.Rate(examples_, planned_examples_)),
      .number = updates_,
      .progress = PlanProgress(examples_, planned_examples_),
  };
  const std::vector<std::span<float>> slots(slots_.begin(), slots_.end());
  optimizer_.Apply(update, sum_, parameters_, slots);
  examples_ += total;
  return absl::OkStatus();
}

RunResult::Point PeerRun::Now() const {
  RunResult::Point point;
  point.set_seconds(absl::ToDoubleSeconds(queue_.elapsed()));
  point.set_step(updated_steps_);
  point.set_examples(examples_);
  point.set_updates(updates_);
  uint64_t sent_bytes = 0;
  for (size_t w = 0; w < workers_.size(); ++w) sent_bytes += network_.sent_bytes(w);
  point.set_push_bytes(sent_bytes);
  point.set_pull_bytes(0);
  return point;
}

void PeerRun::AddPoint() {
  const bool last = updated_steps_ == pool_.own().steps();
  const auto due = static_cast<uint64_t>(tests_.size() + 1) * planned_examples_;
  if (!last && examples_ * spec_.tests < due) return;
  RunResult::Point* point = result_.add_point();
  *point = Now();
  if (loss_examples_ > 0) {
    point->set_train_loss(loss_sum_ / static_cast<double>(loss_examples_));
  }
  loss_sum_ = 0;
  loss_examples_ = 0;
  Test& test = tests_.emplace_back();
  test.point = point;
  test.parameters = std::make_unique<std::vector<float>>(parameters_);
  test.result =
      pool_.Submit<absl::StatusOr<TestScore>>([values = test.parameters.get()](LearningTask& task) {
        return task.Test(Split(*values, task.tensors()));
      });
}

absl::StatusOr<RunResult> PeerRun::Run() {
  for (size_t w = 0; w < workers_.size(); ++w) BeginStep(w);
  while (status_.ok() && !queue_.empty()) queue_.RunNext();
  // The pool must not use the arrays of this run when they are gone.
  for (Worker& worker : workers_) {
    if (worker.result.valid()) worker.result.wait();
  }
  for (Test& test : tests_) test.result.wait();
  RETURN_IF_ERROR(status_);
  for (Test& test : tests_) {
    ASSIGN_OR_RETURN(const TestScore tested, test.result.get());
    test.point->set_test_loss(tested.loss);
    if (tested.accuracy.has_value()) test.point->set_test_accuracy(*tested.accuracy);
  }
  const RunResult::Point end = Now();
  result_.set_seconds(end.seconds());
  result_.set_steps(end.step());
  result_.set_updates(end.updates());
  result_.set_examples(end.examples());
  result_.set_push_bytes(end.push_bytes());
  result_.set_pull_bytes(0);
  result_.set_sent_values(end.step() == 0 ? 0 : exchange_->SentValues(Step{end.step() - 1}));
  result_.set_model_values(parameters_.size());
  result_.set_median_step_seconds(absl::ToDoubleSeconds(Median(step_times_)));
  if (end.seconds() > 0) {
    result_.set_busy(absl::ToDoubleSeconds(computing_) / static_cast<double>(workers_.size()) /
                     end.seconds());
  }
  result_.set_late_pushes(0);
  result_.set_dropped_pushes(0);
  result_.set_parameters_crc(ParametersCrc(pool_.own().tensors(), parameter_tensors_));
  return std::move(result_);
}

}  // namespace

absl::StatusOr<RunResult> RunPeers(const RunSpec& spec, const MakeLearningTask& task,
                                   const RunControl& control) {
  RETURN_IF_ERROR(CheckPeers(spec));
  ASSIGN_OR_RETURN(const auto optimizer, MakeOptimizer(spec.job.optimizer));
  ASSIGN_OR_RETURN(const Schedule schedule, Schedule::Make(spec.job.schedule));
  ASSIGN_OR_RETURN(ComputeTimes times,
                   ComputeTimes::Make(spec.machines.compute(), spec.folder, spec.job.task.seed));
  ASSIGN_OR_RETURN(const std::unique_ptr<TaskPool> pool, TaskPool::Make(task, control.threads));
  PeerRun run(spec, control, *pool, std::move(times), *optimizer, schedule);
  RETURN_IF_ERROR(run.MakeExchange());
  return run.Run();
}

}  // namespace thinwire::lab
