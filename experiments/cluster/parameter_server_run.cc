// RunParameterServer: workers and servers in virtual time (run.h).
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "common/memory/byte_chain.h"
#include "common/partition.h"
#include "common/spec/place_tensors.h"
#include "common/spec/recovery_spec.h"
#include "common/spec/rule.h"
#include "common/status_macros.h"
#include "common/text/problems.h"
#include "experiments/cluster/codec_costs.h"
#include "experiments/cluster/compute_times.h"
#include "experiments/cluster/event_queue.h"
#include "experiments/cluster/lab_server.h"
#include "experiments/cluster/lab_worker.h"
#include "experiments/cluster/network.h"
#include "experiments/cluster/run.h"
#include "experiments/cluster/run_record.h"
#include "experiments/cluster/task_pool.h"
#include "server/core/optimizer/group_updates.h"
#include "worker/client_options.h"

namespace thinwire::lab {
namespace {

constexpr uint64_t kEventsPerReport = 1000;

// Checks the settings that the daemons support and virtual time does not.
absl::Status CheckSupported(const RunSpec& spec) {
  const JobSpec& job = spec.job;
  Problems problems = job.Validate();
  const auto require = [&](bool good, const std::string& setting, const std::string& expected,
                           const auto& got) { problems.Require(good, setting, expected, got); };
  require(spec.machines.exchange() == Machines::Exchange::servers, "machines.exchange", "servers",
          Machines::Exchange::Value_Name(spec.machines.exchange()));
  require(!job.push.choose.has_value(), "job.compression.push", "a codec in virtual time",
          "auto or fastest");
  require(job.recovery.durability == Durability::kNone, "job.recovery.durability",
          "none in virtual time", "another value");
  require(!job.task.device.starts_with("cuda"), "job.task.device", "auto or cpu in virtual time",
          job.task.device);
  require(spec.tests > 0, "tests", "at least 1", spec.tests);
  require(!spec.machines.servers_beside_workers() || job.server_count <= job.rule.workers,
          "machines.servers_beside_workers", "at most as many servers as workers",
          absl::StrCat(job.server_count, " servers, ", job.rule.workers, " workers"));
  if (spec.machines.has_imposed_staleness()) {
    require(job.rule.mode() == "async", "machines.imposed_staleness", "mode async",
            std::string(job.rule.mode()));
    require(job.rule.fold_every == 1, "machines.imposed_staleness", "fold_every: 1",
            job.rule.fold_every);
    require(!job.publish.has_value() || job.publish->every <= 1, "machines.imposed_staleness",
            "publish_every: 1 with deltas", job.publish.has_value() ? job.publish->every : 0);
  }
  return problems.ToStatus();
}

// The machines of the workers are numbered first. The servers follow, or share the machines of the
// workers with their numbers.
std::vector<LinkSpec> Links(const RunSpec& spec) {
  std::vector<LinkSpec> links(spec.job.rule.workers, LinkOf(spec.machines.worker_link()));
  if (spec.machines.servers_beside_workers()) return links;
  links.resize(links.size() + spec.job.server_count, LinkOf(spec.machines.server_link()));
  return links;
}

// One run. The objects refer to each other, so they stay at their addresses.
class ParameterServerRun {
 public:
  static absl::StatusOr<std::unique_ptr<ParameterServerRun>> Make(const RunSpec& spec,
                                                                  const MakeLearningTask& task,
                                                                  uint32_t threads);

  absl::StatusOr<RunResult> Run(const RunControl& control);

 private:
  ParameterServerRun(const RunSpec& spec, Partition partition, std::vector<GroupUpdate> updates,
                     ComputeTimes times, std::unique_ptr<TaskPool> pool)
      : spec_(spec),
        partition_(std::move(partition)),
        updates_(std::move(updates)),
        times_(std::move(times)),
        costs_(spec.machines),
        network_(Links(spec), queue_),
        first_server_(spec.machines.servers_beside_workers() ? 0 : spec.job.rule.workers),
        pool_(std::move(pool)) {}

  void MakeServers();
  absl::Status MakeWorkers();
  size_t MachineOf(ServerId server) const { return first_server_ + server.value; }
  // Returns the smallest number of steps that a worker has finished.
  Step FinishedSteps() const;
  void Fail(const absl::Status& status) { status_.Update(status); }

  const RunSpec& spec_;
  const Partition partition_;
  const std::vector<GroupUpdate> updates_;
  const ComputeTimes times_;
  const CodecCosts costs_;
  EventQueue queue_;
  Network network_;
  const size_t first_server_;
  absl::Status status_;
  size_t running_count_ = 0;  // workers that have not finished
  std::vector<std::unique_ptr<LabServer>> servers_;
  std::vector<std::unique_ptr<LabWorker>> workers_;
  std::optional<RunRecord> record_;
  // Declared last: its threads use the workers.
  std::unique_ptr<TaskPool> pool_;
};

absl::StatusOr<std::unique_ptr<ParameterServerRun>> ParameterServerRun::Make(
    const RunSpec& spec, const MakeLearningTask& task, uint32_t threads) {
  RETURN_IF_ERROR(CheckSupported(spec));
  const JobSpec& job = spec.job;
  ASSIGN_OR_RETURN(std::unique_ptr<TaskPool> pool, TaskPool::Make(task, threads));
  std::vector<TensorShape> tensors = pool->own().tensors();
  RETURN_IF_ERROR(PlaceTensors(job.AllGroups(), tensors));
  ASSIGN_OR_RETURN(Partition partition,
                   Partition::Make(std::move(tensors), job.shard_size, job.server_count));
  ASSIGN_OR_RETURN(std::vector<GroupUpdate> updates,
                   MakeGroupUpdates(job.AllGroups(), job.schedule));
  ASSIGN_OR_RETURN(ComputeTimes times,
                   ComputeTimes::Make(spec.machines.compute(), spec.folder, job.task.seed));
  auto run = std::unique_ptr<ParameterServerRun>(new ParameterServerRun(
      spec, std::move(partition), std::move(updates), std::move(times), std::move(pool)));
  run->MakeServers();
  RETURN_IF_ERROR(run->MakeWorkers());
  return run;
}

void ParameterServerRun::MakeServers() {
  const LearningTask& task = pool_->own();
  std::vector<std::span<const float>> initial;
  for (uint32_t i = 0; i < task.tensors().size(); ++i) initial.push_back(task.initial(i));
  const LabServer::Shared shared = {
      .job = spec_.job,
      .partition = partition_,
      .updates = updates_,
      .costs = costs_,
      .planned_examples = task.examples(),
      .imposed_staleness = spec_.machines.has_imposed_staleness()
                               ? std::optional<uint64_t>(spec_.machines.imposed_staleness())
                               : std::nullopt,
      .queue = queue_,
      .send =
          [this](ServerId server, WorkerId worker, ByteChain frame,
                 std::function<void()> delivered) {
            record_->Pulled(frame.size());
            const uint64_t bytes = frame.size();
            network_.Send(
                MachineOf(server), worker.value, bytes,
                [this, server, worker, frame = std::move(frame), delivered = std::move(delivered)] {
                  workers_[worker.value]->Receive(server, frame);
                  delivered();
                });
          },
      .applied = [this](ShardId shard, const Event& event,
                        const Effects& effects) { record_->Applied(shard, event, effects); },
      .failed = [this](const absl::Status& status) { Fail(status); }};
  std::vector<const Shard*> shards(partition_.shard_count());
  for (uint32_t s = 0; s < spec_.job.server_count; ++s) {
    const ServerId id{s};
    servers_.push_back(std::make_unique<LabServer>(shared, id, initial));
    for (const ShardId shard : partition_.ShardsOf(id)) {
      shards[shard.value] = &servers_[s]->shard(shard);
    }
  }
  record_.emplace(RunRecord::Plan{.worker_count = spec_.job.rule.workers,
                                  .examples = task.examples(),
                                  .tests = spec_.tests,
                                  .finished_steps = [this] { return FinishedSteps(); }},
                  partition_, std::move(shards), queue_, *pool_);
}

absl::Status ParameterServerRun::MakeWorkers() {
  const LearningTask& task = pool_->own();
  const LabWorker::Shared shared = {
      .partition = partition_,
      .costs = costs_,
      .times = times_,
      .end = Step{task.steps()},
      .queue = queue_,
      .pool = *pool_,
      .send =
          [this](WorkerId worker, ServerId server, ByteChain frame) {
            record_->Pushed(frame.size());
            const uint64_t bytes = frame.size();
            network_.Send(worker.value, MachineOf(server), bytes,
                          [this, server, frame = std::move(frame)] {
                            servers_[server.value]->Receive(frame);
                          });
          },
      .began = [this](WorkerId worker, absl::Duration time) { record_->Began(worker, time); },
      .computed = [this](const GradientResult& gradient) { record_->Computed(gradient); },
      .finished =
          [this](WorkerId worker) {
            record_->Finished(worker);
            --running_count_;
            for (uint32_t s = 0; s < servers_.size(); ++s) {
              network_.Send(worker.value, MachineOf(ServerId{s}), 0,
                            [this, worker, s] { servers_[s]->Leave(worker); });
            }
          },
      .failed = [this](const absl::Status& status) { Fail(status); }};
  for (uint32_t w = 0; w < spec_.job.rule.workers; ++w) {
    const WorkerId worker{w};
    const ClientOptions options = MakeClientOptions(
        spec_.job,
        {.worker = worker, .planned_examples = task.examples(), .planned_steps = task.steps()});
    ASSIGN_OR_RETURN(auto made, LabWorker::Make(shared, options, spec_.job.DelayOf(worker)));
    workers_.push_back(std::move(made));
  }
  running_count_ = workers_.size();
  return absl::OkStatus();
}

Step ParameterServerRun::FinishedSteps() const {
  Step smallest = workers_[0]->next();
  for (const auto& worker : workers_) smallest = std::min(smallest, worker->next());
  return smallest;
}

absl::StatusOr<RunResult> ParameterServerRun::Run(const RunControl& control) {
  for (const auto& worker : workers_) worker->Start();
  for (uint64_t i = 0; !queue_.empty() && status_.ok(); ++i) {
    queue_.RunNext();
    if (i % kEventsPerReport == 0 && control.progress != nullptr &&
        !control.progress(record_->done())) {
      return absl::CancelledError("the run was stopped");
    }
  }
  RETURN_IF_ERROR(status_);
  if (running_count_ > 0) return absl::InternalError("the simulated workers wait for each other");
  ASSIGN_OR_RETURN(RunResult result, record_->Finish());
  for (const auto& worker : workers_) {
    const std::vector<uint64_t>& counts = worker->value_ages().counts();
    for (size_t age = 0; age < counts.size(); ++age) {
      if (counts[age] > 0) (*result.mutable_value_age())[age] += counts[age];
    }
  }
  return result;
}

}  // namespace

absl::StatusOr<RunResult> RunParameterServer(const RunSpec& spec, const MakeLearningTask& task,
                                             const RunControl& control) {
  ASSIGN_OR_RETURN(const auto run, ParameterServerRun::Make(spec, task, control.threads));
  return run->Run(control);
}

}  // namespace thinwire::lab
