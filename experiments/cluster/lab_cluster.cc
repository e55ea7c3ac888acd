#include "experiments/cluster/lab_cluster.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "common/memory/byte_chain.h"
#include "common/spec/place_tensors.h"
#include "common/status_macros.h"
#include "server/core/shard.h"
#include "worker/client_options.h"

namespace thinwire::lab {
namespace {

constexpr uint64_t kEventsPerReport = 1000;

// The machines of the workers are numbered first. The servers follow, or share the machines of the
// workers with their numbers.
std::vector<LinkSpec> Links(const RunSpec& spec) {
  std::vector<LinkSpec> links(spec.job.rule.workers, LinkOf(spec.machines.worker_link()));
  if (spec.machines.servers_beside_workers()) return links;
  links.resize(links.size() + spec.job.server_count, LinkOf(spec.machines.server_link()));
  return links;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LabCluster>> LabCluster::Make(const RunSpec& spec,
                                                             const MakeLearningTask& task,
                                                             uint32_t threads) {
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
  return std::unique_ptr<LabCluster>(new LabCluster(spec, std::move(partition), std::move(updates),
                                                    std::move(times), std::move(pool)));
}

LabCluster::LabCluster(const RunSpec& spec, Partition partition, std::vector<GroupUpdate> updates,
                       ComputeTimes times, std::unique_ptr<TaskPool> pool)
    : spec_(spec),
      partition_(std::move(partition)),
      updates_(std::move(updates)),
      times_(std::move(times)),
      costs_(spec.machines),
      network_(Links(spec), queue_),
      first_server_(spec.machines.servers_beside_workers() ? 0 : spec.job.rule.workers),
      lead_(spec.job, pool->own().examples()),
      pool_(std::move(pool)) {}

std::unique_ptr<RunRecorder> LabCluster::MakeRecord(uint64_t examples, uint32_t tests) {
  return std::make_unique<RunRecorder>(
      RunRecorder::Plan{.worker_count = spec_.job.rule.workers,
                        .examples = examples,
                        .tests = tests,
                        .finished_steps = [this] { return FinishedSteps(); }},
      partition_, std::vector<const Shard*>(), [this] { return queue_.elapsed(); }, *pool_);
}

absl::Status LabCluster::Begin(const Stretch& stretch, RunRecorder& record) {
  record_ = &record;
  end_ = stretch.end;
  workers_.clear();
  servers_.clear();
  MakeServers(stretch);
  return MakeWorkers(stretch);
}

void LabCluster::MakeServers(const Stretch& stretch) {
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
      .applied =
          [this](ShardId shard, const Event& event, const Effects& effects) {
            record_->Applied(shard, event, effects);
            if (lead_.chooses_rule() && shard == ShardId{0}) TuneRule(event, effects);
            const bool of_lead = partition_.server(shard) == ServerId{0};
            if (lead_.grows_batch() && of_lead && !effects.rounds.empty()) RoundClosed();
          },
      .full =
          [this](ServerId server, const FullRound& part) {
            network_.Send(MachineOf(server), MachineOf(ServerId{0}), 0,
                          [this, server, part] { AddPart(server, part); });
          },
      .failed = [this](const absl::Status& status) { Fail(status); }};
  const std::span<const ShardSnapshot> snapshots =
      stretch.begin == nullptr ? std::span<const ShardSnapshot>() : stretch.begin->shards;
  std::vector<const Shard*> shards(partition_.shard_count());
  std::vector<ServerId> with_shards;
  for (uint32_t s = 0; s < spec_.job.server_count; ++s) {
    const ServerId id{s};
    servers_.push_back(std::make_unique<LabServer>(shared, id, initial, snapshots));
    for (const ShardId shard : partition_.ShardsOf(id)) {
      shards[shard.value] = &servers_[s]->shard(shard);
    }
    if (!partition_.ShardsOf(id).empty()) with_shards.push_back(id);
  }
  round_sum_.emplace(std::span<const ServerId>(with_shards));
  record_->Watch(std::move(shards));
}

absl::Status LabCluster::MakeWorkers(const Stretch& stretch) {
  const LearningTask& task = pool_->own();
  const LabWorker::Shared shared = {
      .partition = partition_,
      .costs = costs_,
      .times = times_,
      .task = spec_.job.task,
      .end = end_,
      .deals = deals_,
      .measured_from = stretch.measured_from,
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
      .finished = [this,
                   leaves = stretch.end == end()](WorkerId worker) { Finish(worker, leaves); },
      .failed = [this](const absl::Status& status) { Fail(status); }};
  for (uint32_t w = 0; w < spec_.job.rule.workers; ++w) {
    const WorkerId worker{w};
    const ClientOptions options = MakeClientOptions(
        spec_.job,
        {.worker = worker, .planned_examples = task.examples(), .planned_steps = task.steps()});
    ASSIGN_OR_RETURN(auto made, LabWorker::Make(shared, options, spec_.job.DelayOf(worker)));
    if (!stretch.codecs.empty()) RETURN_IF_ERROR(made->UseCodecs(stretch.codecs));
    if (stretch.begin != nullptr) {
      RETURN_IF_ERROR(made->Restore(stretch.begin->step, stretch.begin->workers[w]));
    }
    workers_.push_back(std::move(made));
  }
  running_count_ = workers_.size();
  return absl::OkStatus();
}

void LabCluster::Finish(WorkerId worker, bool leaves) {
  record_->Finished(worker);
  --running_count_;
  if (!leaves) return;
  for (uint32_t s = 0; s < servers_.size(); ++s) {
    network_.Send(worker.value, MachineOf(ServerId{s}), 0,
                  [this, worker, s] { servers_[s]->Leave(worker); });
  }
}

void LabCluster::TuneRule(const Event& event, const Effects& effects) {
  const Shard& first = servers_[partition_.server(ShardId{0}).value]->shard(ShardId{0});
  const std::optional<RuleEvent> change = lead_.Applied(event, effects, first, queue_.elapsed());
  if (!change.has_value()) return;
  record_->Announced(*change);
  // Later, because a server is applying an event now.
  queue_.After(absl::ZeroDuration(), [this, change = *change] {
    for (const auto& server : servers_) server->ChangeRule(change);
  });
}

void LabCluster::AddPart(ServerId server, const FullRound& part) {
  const std::optional<FullRound> sum = round_sum_->Add(server.value, part);
  if (!sum.has_value()) return;
  const ClipEvent event = {sum->step, ClipFactor(spec_.job.clip_norm, sum->squared_norm)};
  for (uint32_t s = 0; s < servers_.size(); ++s) {
    network_.Send(MachineOf(ServerId{0}), MachineOf(ServerId{s}), 0,
                  [this, s, event] { servers_[s]->Clip(event); });
  }
}

void LabCluster::RoundClosed() {
  std::vector<const Shard*> shards;
  for (const ShardId shard : partition_.ShardsOf(ServerId{0})) {
    shards.push_back(&servers_[0]->shard(shard));
  }
  const std::optional<Deal> deal = lead_.RoundClosed(shards, queue_.elapsed());
  if (!deal.has_value()) return;
  std::vector<Deal> deals = deals_ == nullptr ? std::vector<Deal>() : *deals_;
  deals.push_back(*deal);
  deals_ = std::make_shared<const std::vector<Deal>>(std::move(deals));
  pool_->own().Follow(*deals_);
  end_ = end();
}

Step LabCluster::FinishedSteps() const {
  Step smallest = workers_[0]->next();
  for (const auto& worker : workers_) smallest = std::min(smallest, worker->next());
  return smallest;
}

absl::Status LabCluster::Run(const std::function<bool()>& go_on) {
  for (const auto& worker : workers_) worker->Start();
  for (uint64_t i = 0; !queue_.empty() && status_.ok(); ++i) {
    queue_.RunNext();
    if (i % kEventsPerReport == 0 && !go_on()) return absl::CancelledError("the run was stopped");
  }
  RETURN_IF_ERROR(status_);
  if (running_count_ > 0) return absl::InternalError("the simulated workers wait for each other");
  return absl::OkStatus();
}

absl::StatusOr<ClusterState> LabCluster::Save() {
  ClusterState state = {.step = FinishedSteps()};
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    const ShardId id{s};
    Shard& shard = servers_[partition_.server(id).value]->shard(id);
    if (!shard.CanSave()) {
      return absl::InternalError("a shard cannot be saved between two steps");
    }
    state.shards.push_back(shard.Save());
  }
  for (const auto& worker : workers_) {
    ASSIGN_OR_RETURN(client::SavedResiduals saved, worker->Save());
    state.workers.push_back(std::move(saved));
  }
  return state;
}

void LabCluster::AddValueAges(RunResult& result) const {
  for (const auto& worker : workers_) {
    const std::vector<uint64_t>& counts = worker->value_ages().counts();
    for (size_t age = 0; age < counts.size(); ++age) {
      if (counts[age] > 0) (*result.mutable_value_age())[age] += counts[age];
    }
  }
}

}  // namespace thinwire::lab
