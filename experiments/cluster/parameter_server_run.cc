// RunParameterServer: the real jobs of the servers and the real client cores of the workers on one
// virtual time (sim/cluster.h). Only the learning task, its computing times, the links and the
// costs of codecs are the laboratory's.
//
// Time and bytes count from the moment at which the last worker begins its first step. Joining and
// the first parameters take neither.
#include <algorithm>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/process/temp_dir.h"
#include "client/encode/local_steps.h"
#include "common/base/status_macros.h"
#include "common/model/partition.h"
#include "common/spec/push_spec.h"
#include "common/spec/recovery_spec.h"
#include "common/spec/rule.h"
#include "common/text/problems.h"
#include "experiments/cluster/compute_times.h"
#include "experiments/cluster/fastest_codecs.h"
#include "experiments/cluster/frame_costs.h"
#include "experiments/cluster/links.h"
#include "experiments/cluster/run.h"
#include "experiments/cluster/run_parts.h"
#include "experiments/cluster/run_recorder.h"
#include "experiments/cluster/step_pushes.h"
#include "experiments/cluster/task_pool.h"
#include "experiments/cluster/value_ages.h"
#include "sim/cluster.h"

namespace thinwire::lab {
namespace {

constexpr uint64_t kEventsPerReport = 1000;
// The workers wait for each other if nothing happens for so long.
constexpr absl::Duration kLongestWait = absl::Hours(24);

class ServerRun final : private sim::ClusterObserver {
 public:
  // STATE_DIR: an empty folder in which workers save their residuals; empty: they do not.
  ServerRun(const RunSpec& spec, const RunControl& control, const RunParts& parts,
            const std::string& state_dir);
  ~ServerRun() override;

  absl::StatusOr<RunResult> Run();

 private:
  struct Computed {
    GradientResult result;
    std::vector<std::vector<float>> gradient;  // by tensor
  };
  struct Worker {
    explicit Worker(const Partition& partition) : ages(partition) {}
    std::optional<client::LocalSteps> local;
    std::future<absl::StatusOr<Computed>> computed;
    std::future<absl::StatusOr<GradientResult>> took;  // streaming local steps
    std::shared_ptr<const std::vector<Deal>> deals;
    ValueAges ages;
    bool began = false;    // its first step
    bool trained = false;  // its last step
  };

  sim::VirtualTask Task();
  // Tells the tasks the deals up to STEP.
  void Follow(const sim::VirtualStep& step);
  // WORKER begins a step, which it computes for TIME, or whose first local steps take TIME.
  void Began(WorkerId worker, absl::Duration time);
  // The functions of the task.
  absl::Duration BeginLocalSteps(const sim::VirtualStep& step, uint32_t first, uint32_t end);
  absl::Status FinishLocalSteps(const sim::VirtualStep& step);
  absl::Duration Begin(const sim::VirtualStep& step);
  absl::StatusOr<uint32_t> Finish(const sim::VirtualStep& step,
                                  std::vector<std::vector<float>>& gradient);
  absl::StatusOr<double> Accuracy(const sim::VirtualStep& step);

  void OnApplied(ShardId id, const Event& event, const Effects& effects, const Shard& shard,
                 LogSequence sequence) override;
  void OnRestored(ShardId id, const Shard& shard, LogSequence applied) override;
  void EndServer(ServerId server) override;
  void OnTrained(WorkerId worker) override;
  void OnFailed(WorkerId worker, const absl::Status& failure) override;

  // The time since the beginning of the run.
  absl::Duration now() {
    return began_.has_value() ? cluster_.time().elapsed() - *began_ : absl::ZeroDuration();
  }
  void Watch(ShardId id, const Shard* shard);
  // Returns whether all servers have processes that know their shards.
  bool watches() const { return std::ranges::find(shards_, nullptr) == shards_.end(); }
  // Adds the decisions of push: adaptive to RESULT.
  void AddDecisions(RunResult& result);
  Step FinishedSteps();

  const RunSpec& spec_;
  const RunControl& control_;
  const Partition& partition_;
  const ComputeTimes& times_;
  TaskPool& pool_;
  std::map<ShardId, Version> encoded_;
  std::vector<Worker> workers_;
  std::vector<const Shard*> shards_;  // null: no event yet, or the server has no process
  std::map<uint64_t, absl::Duration> trial_times_;  // the first step of a trial, and when it began
  std::optional<absl::Duration> began_;
  size_t began_count_ = 0, trained_count_ = 0;  // workers
  absl::Status failure_;
  absl::Duration progress_;  // the time of the last event or of the end of a computation
  RunRecorder record_;
  sim::Cluster cluster_;
};

ServerRun::ServerRun(const RunSpec& spec, const RunControl& control, const RunParts& parts,
                     const std::string& state_dir)
    : spec_(spec),
      control_(control),
      partition_(parts.partition),
      times_(parts.times),
      pool_(*parts.pool),
      shards_(partition_.shard_count()),
      record_(
          {.worker_count = spec.job.rule.workers,
           .examples = pool_.own().examples(),
           .tests = spec.tests,
           .finished_steps = [this] { return FinishedSteps(); }},
          partition_, {}, [this] { return now(); }, pool_),
      cluster_(spec.job, Task(),
               {.links = {.worker = LinkOf(spec.machines.worker_link()),
                          .server = LinkOf(spec.machines.server_link()),
                          .servers_beside_workers = spec.machines.servers_beside_workers(),
                          .sites = SitesOf(spec.machines)},
                .costs = FrameCostsOf(spec, partition_, encoded_),
                .observer = this,
                .state_dir = state_dir}) {
  for (uint32_t w = 0; w < spec.job.rule.workers; ++w) {
    Worker& worker = workers_.emplace_back(partition_);
    const LocalStepsSpec& local = spec.job.task.local;
    if (local.enabled()) worker.local.emplace(local, partition_.tensors());
  }
  cluster_.network().SetIdeal(true);
  cluster_.network().WatchBytes([this](bool to_server, uint64_t bytes) {
    to_server ? record_.Pushed(bytes) : record_.Pulled(bytes);
  });
}

ServerRun::~ServerRun() {
  // Threads of the pool may still read the replicas of the cluster.
  for (const Worker& worker : workers_) {
    if (worker.computed.valid()) worker.computed.wait();
    if (worker.took.valid()) worker.took.wait();
  }
}

sim::VirtualTask ServerRun::Task() {
  const LearningTask& task = pool_.own();
  sim::VirtualTask all = {.tensors = partition_.tensors(),
                          .last = Step{task.steps()},
                          .planned_examples = task.examples(),
                          .planned_steps = task.steps()};
  for (uint32_t i = 0; i < all.tensors.size(); ++i) {
    const std::span<const float> initial = task.initial(i);
    all.initial.emplace_back(initial.begin(), initial.end());
  }
  if (spec_.job.schedule.grows_batch() || spec_.job.task.local.by_speed) {
    all.data = task.sampling();
    all.config = spec_.config;
  }
  const PushSpec& push = spec_.job.push;
  if (push.choose.has_value() || push.adaptive.has_value()) {
    all.fastest = FastestCodecs(spec_, partition_);
  }
  if (push.adaptive.has_value()) {
    all.trial_steps = push.adaptive->speculate_steps;
    all.test = [this](const sim::VirtualStep& step) { return Accuracy(step); };
  }
  all.time = [this](const sim::VirtualStep& step) { return Begin(step); };
  all.gradient = [this](const sim::VirtualStep& step, std::vector<std::vector<float>>& gradient) {
    return Finish(step, gradient);
  };
  if (spec_.job.task.local.streaming()) {
    all.streaming = sim::VirtualLocalSteps{
        .spec = spec_.job.task.local,
        .plan =
            [this](const sim::VirtualStep& step) {
              Follow(step);
              const StepShape shape = pool_.own().ShapeOf(step.worker, step.step);
              return sim::VirtualLocalSteps::Plan{.examples = shape.examples,
                                                  .local_steps = shape.local_steps,
                                                  .whole = shape.ends_epoch};
            },
        .time = [this](const sim::VirtualStep& step, uint32_t first,
                       uint32_t end) { return BeginLocalSteps(step, first, end); },
        .train = [this](const sim::VirtualStep& step) { return FinishLocalSteps(step); }};
  }
  return all;
}

void ServerRun::Follow(const sim::VirtualStep& step) {
  Worker& worker = workers_[step.worker.value];
  if (worker.deals == nullptr || worker.deals->size() != step.deals.size()) {
    worker.deals = std::make_shared<const std::vector<Deal>>(step.deals.begin(), step.deals.end());
    pool_.own().Follow(*worker.deals);
  }
}

absl::Duration ServerRun::Begin(const sim::VirtualStep& step) {
  Worker& worker = workers_[step.worker.value];
  Follow(step);
  if (const auto trial = cluster_.worker(step.worker)->trial()) {
    trial_times_.emplace(trial->value, now());
  }
  const uint64_t passes = pool_.own().pass_count(step.worker, step.step);
  const absl::Duration time = times_.OfJobStep(spec_.job, step.worker, step.step, passes, now());
  Began(step.worker, time);
  const std::vector<std::span<float>> parameters(step.parameters.begin(), step.parameters.end());
  worker.computed = pool_.Submit<absl::StatusOr<Computed>>(
      [&worker, &partition = partition_, deals = worker.deals, parameters, number = step.worker,
       step = step.step](LearningTask& task) -> absl::StatusOr<Computed> {
        task.Follow(*deals);
        Computed computed;
        std::vector<std::span<float>> gradient;
        for (const TensorShape& tensor : partition.tensors()) {
          gradient.emplace_back(computed.gradient.emplace_back(tensor.value_count()));
        }
        ASSIGN_OR_RETURN(computed.result, ComputeGradient(task, number, step, parameters, gradient,
                                                          worker.local ? &*worker.local : nullptr));
        return computed;
      });
  return time;
}

void ServerRun::Began(WorkerId worker, absl::Duration time) {
  record_.Began(worker, time);
  progress_ = cluster_.time().elapsed() + time;
  if (!std::exchange(workers_[worker.value].began, true)) ++began_count_;
  if (!began_.has_value() && began_count_ == workers_.size()) {
    began_ = cluster_.time().elapsed();
    cluster_.network().SetIdeal(false);
  }
}

absl::Duration ServerRun::BeginLocalSteps(const sim::VirtualStep& step, uint32_t first,
                                          uint32_t end) {
  Worker& worker = workers_[step.worker.value];
  const TaskSpec& spec = spec_.job.task;
  const uint64_t passes = pool_.own().pass_count(step.worker, step.step);
  const uint64_t a = spec.accumulate;  // passes of a local step
  absl::Duration time =
      times_.OfPasses(step.worker, step.step, std::max(spec.step_passes(), passes), first * a,
                      std::min(end * a, passes), now());
  if (first == 0) {
    time += spec_.job.DelayOf(step.worker);
    Began(step.worker, time);
  } else {
    record_.ComputesOn(step.worker, time);
    progress_ = cluster_.time().elapsed() + time;
  }
  const std::vector<std::span<float>> parameters(step.parameters.begin(), step.parameters.end());
  worker.took = pool_.Submit<absl::StatusOr<GradientResult>>(
      [&worker, &partition = partition_, deals = worker.deals, parameters, number = step.worker,
       step = step.step, first, end](LearningTask& task) {
        task.Follow(*deals);
        std::vector<std::vector<float>> values;
        std::vector<std::span<float>> gradient;
        for (const TensorShape& tensor : partition.tensors()) {
          gradient.emplace_back(values.emplace_back(tensor.value_count()));
        }
        return TakeLocalSteps(task, number, step, first, end, parameters, gradient, *worker.local);
      });
  return time;
}

absl::Status ServerRun::FinishLocalSteps(const sim::VirtualStep& step) {
  ASSIGN_OR_RETURN(const GradientResult result, workers_[step.worker.value].took.get());
  record_.Computed(result);
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ServerRun::Finish(const sim::VirtualStep& step,
                                           std::vector<std::vector<float>>& gradient) {
  ASSIGN_OR_RETURN(Computed computed, workers_[step.worker.value].computed.get());
  record_.SetTrial(cluster_.worker(step.worker)->trial().has_value());
  record_.Computed(computed.result);
  if (computed.result.examples > 0) gradient.swap(computed.gradient);
  return computed.result.examples;
}

absl::StatusOr<double> ServerRun::Accuracy(const sim::VirtualStep& step) {
  std::future<absl::StatusOr<TestScore>> test;
  if (spec_.job.optimizer.parameter_average > 0) {
    test = record_.Test();
  } else {
    const std::vector<std::span<float>> parameters(step.parameters.begin(), step.parameters.end());
    test = pool_.Submit<absl::StatusOr<TestScore>>(
        [&parameters](LearningTask& task) { return task.Test(parameters); });
    test.wait();
  }
  ASSIGN_OR_RETURN(const TestScore result, test.get());
  // push: adaptive refuses loss: script, so there is an accuracy.
  return *result.accuracy;
}

void ServerRun::Watch(ShardId id, const Shard* shard) {
  if (std::exchange(shards_[id.value], shard) != shard && watches()) record_.Watch(shards_);
}

void ServerRun::OnRestored(ShardId id, const Shard& shard, LogSequence) {
  Watch(id, &shard);
  if (id == ShardId{0}) record_.GoBack(shard.version());
}

void ServerRun::EndServer(ServerId server) {
  for (const ShardId shard : partition_.ShardsOf(server)) Watch(shard, nullptr);
}

void ServerRun::OnApplied(ShardId id, const Event& event, const Effects& effects,
                          const Shard& shard, LogSequence) {
  Watch(id, &shard);
  if (!began_.has_value() || !watches()) return;
  progress_ = std::max(progress_, cluster_.time().elapsed());
  record_.Applied(id, event, effects);
  if (const auto* rule = std::get_if<RuleEvent>(&event); rule != nullptr && id == ShardId{0}) {
    record_.Announced(*rule);
  }
  const auto* push = std::get_if<PushEvent>(&event);
  // The pushes of a discarded trial are no part of the run.
  if (push == nullptr || push->examples == 0 || spec_.job.push.adaptive.has_value()) return;
  if (effects.judgement->verdict != Verdict::kAccept) return;
  workers_[push->worker.value].ages.Accepted(id, push->step, push->payload);
}

void ServerRun::OnTrained(WorkerId id) {
  Worker& worker = workers_[id.value];
  if (std::exchange(worker.trained, true)) return;
  record_.Finished(id);
  ++trained_count_;
}

void ServerRun::OnFailed(WorkerId worker, const absl::Status& failure) { failure_.Update(failure); }

Step ServerRun::FinishedSteps() {
  Step least = cluster_.worker(WorkerId{0})->step();
  for (uint32_t w = 1; w < workers_.size(); ++w) {
    least = std::min(least, cluster_.worker(WorkerId{w})->step());
  }
  return least;
}

void ServerRun::AddDecisions(RunResult& result) {
  std::optional<StatusReply> status;
  cluster_.job(ServerId{0})->Call(StatusRequest(), [&status](absl::StatusOr<StatusReply> reply) {
    status = *std::move(reply);
  });
  cluster_.RunUntil(absl::InfiniteDuration(), [&status] { return status.has_value(); });
  for (PrecisionDecision& decision : *status->mutable_precision_decisions()) {
    decision.set_seconds(absl::ToDoubleSeconds(trial_times_[decision.step()]));
    *result.add_decision() = std::move(decision);
  }
}

absl::StatusOr<RunResult> ServerRun::Run() {
  cluster_.StartAll();
  bool stopped = false;
  uint64_t events = 0;
  for (uint32_t s = 0; s < spec_.job.server_count; ++s) {
    RETURN_IF_ERROR(cluster_.failure(ServerId{s}));
  }
  cluster_.RunUntil(absl::InfiniteDuration(), [&] {
    if (++events % kEventsPerReport == 0 && control_.progress != nullptr) {
      stopped = !control_.progress(record_.done());
    }
    if (cluster_.time().elapsed() - progress_ > kLongestWait) {
      failure_.Update(absl::InternalError(absl::StrCat(
          "the simulated workers wait for each other:\n", cluster_.DescribeWorkers())));
    }
    return stopped || !failure_.ok() || trained_count_ == workers_.size();
  });
  if (stopped) return absl::CancelledError("the run was stopped");
  RETURN_IF_ERROR(failure_);
  // The factor of clip_norm for the last round may be under way.
  cluster_.RunUntil(cluster_.time().elapsed() + kLongestWait, [this] {
    return watches() &&
           std::ranges::all_of(shards_, [](const Shard* shard) { return shard->CanSave(); });
  });
  ASSIGN_OR_RETURN(RunResult result, record_.Finish());
  if (spec_.job.push.adaptive.has_value()) AddDecisions(result);
  for (const Worker& worker : workers_) {
    const std::vector<uint64_t>& counts = worker.ages.counts();
    for (size_t age = 0; age < counts.size(); ++age) {
      if (counts[age] > 0) (*result.mutable_value_age())[age] += counts[age];
    }
  }
  return result;
}

}  // namespace

// The daemons support some settings that virtual time does not.
absl::Status CheckSupported(const RunSpec& spec) {
  const JobSpec& job = spec.job;
  Problems problems = job.Validate();
  const auto require = [&](bool good, const std::string& setting, const std::string& expected,
                           const auto& got) { problems.Require(good, setting, expected, got); };
  require(spec.machines.exchange() == Machines::Exchange::servers, "machines.exchange", "servers",
          Machines::Exchange::Value_Name(spec.machines.exchange()));
  require(job.push.choose != ChoiceRule::kAuto, "job.compression.push",
          "a codec, fastest or adaptive in virtual time", "auto");
  require(job.recovery.durability == Durability::kNone, "job.recovery.durability",
          "none in virtual time", "another value");
  require(!job.task.device.starts_with("cuda"), "job.task.device", "auto or cpu in virtual time",
          job.task.device);
  require(!job.schedule.grows_batch() || !spec.machines.has_synthetic(), "machines.synthetic",
          "a schedule other than noise_scale", "noise_scale");
  require(!job.task.local.by_speed ||
              (!spec.machines.has_synthetic() && !spec.machines.has_imposed_staleness()),
          "job.task.auto_local_steps", "false with a synthetic task or imposed staleness", "true");
  require(spec.tests > 0, "tests", "at least 1", spec.tests);
  require(!spec.machines.servers_beside_workers() || job.server_count <= job.rule.workers,
          "machines.servers_beside_workers", "at most as many servers as workers",
          absl::StrCat(job.server_count, " servers, ", job.rule.workers, " workers"));
  if (spec.machines.has_imposed_staleness()) {
    require(job.rule.mode() == "async", "machines.imposed_staleness", "mode async",
            std::string(job.rule.mode()));
    require(!job.task.local.streaming(), "machines.imposed_staleness",
            "fragments: 1 and overlap_steps: 0", "streaming local steps");
    require(!job.push.choose.has_value(), "machines.imposed_staleness", "one codec", "fastest");
    require(job.rule.fold_every == 1, "machines.imposed_staleness", "fold_every: 1",
            job.rule.fold_every);
    require(!job.publish.has_value() || job.publish->every <= 1, "machines.imposed_staleness",
            "publish_every: 1 with deltas", job.publish.has_value() ? job.publish->every : 0);
  }
  return problems.ToStatus();
}

absl::StatusOr<RunResult> RunParameterServer(const RunSpec& spec, const MakeLearningTask& task,
                                             const RunControl& control) {
  RETURN_IF_ERROR(CheckSupported(spec));
  ASSIGN_OR_RETURN(const RunParts parts, MakeRunParts(spec, task, control.threads));
  if (!spec.job.push.adaptive.has_value()) return ServerRun(spec, control, parts, "").Run();
  // All processes return to checkpoints: those of the servers are on simulated disks.
  RunSpec durable = spec;
  durable.job.recovery.durability = Durability::kCheckpoint;
  std::error_code error;  // of a missing folder, which Make reports
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder,
                   TempDir::Make(std::filesystem::temp_directory_path(error).string()));
  return ServerRun(durable, control, parts, folder->path()).Run();
}

}  // namespace thinwire::lab
