#include "experiments/replay/imposed_staleness.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "client/options/job_client_options.h"
#include "client/replica/host_parameters.h"
#include "common/base/status_macros.h"
#include "common/codec/payload.h"
#include "experiments/cluster/compute_times.h"
#include "experiments/cluster/run_parts.h"
#include "experiments/cluster/run_recorder.h"
#include "experiments/cluster/task_pool.h"
#include "experiments/replay/readable_values.h"
#include "experiments/replay/replay_worker.h"
#include "server/core/optimizer/group_updates.h"
#include "server/core/shard.h"
#include "server/shards/shard_options.h"

namespace thinwire::lab {
namespace {

constexpr Generation kGeneration{1};
constexpr Incarnation kIncarnation{1};

class Turns {
 public:
  // The arguments must outlive this object.
  Turns(const RunSpec& spec, const RunControl& control, const RunParts& parts,
        const std::vector<GroupUpdate>& updates)
      : spec_(spec),
        control_(control),
        partition_(parts.partition),
        updates_(updates),
        times_(parts.times),
        pool_(*parts.pool),
        worker_count_(spec.job.rule.workers),
        staleness_(spec.machines.imposed_staleness()),
        turn_count_(pool_.own().steps() * worker_count_),
        form_(spec.job.publish.has_value() ? ReadForm::Published() : spec.job.pull_codec) {}
  ~Turns() {
    // Threads of the pool may still use the workers.
    while (finished_ < begun_) Wait(finished_++).IgnoreError();
  }

  // Makes the shards and the workers. Errors: those of the client's codecs.
  absl::Status Prepare();
  absl::StatusOr<RunResult> Run();

 private:
  // The parameters that readers receive after a turn.
  struct Past {
    std::vector<std::vector<float>> values;  // by shard
    std::vector<Version> versions;           // by shard
    uint64_t read_bytes = 0;  // of a reader that has the parameters of the turn before
    absl::Duration when;
  };

  WorkerId WorkerOf(uint64_t turn) const {
    return WorkerId{static_cast<uint32_t>(turn % worker_count_)};
  }
  Step StepOf(uint64_t turn) const { return Step{turn / worker_count_}; }
  // Returns the number of turns that the parameters of TURN contain.
  uint64_t SourceOf(uint64_t turn) const { return turn - std::min(turn, staleness_); }
  const Past& After(uint64_t turn_count) const { return past_[turn_count - first_past_]; }

  void KeepPast();
  // Begins the gradients whose parameters exist, and whose worker's last push is judged.
  void Begin();
  absl::StatusOr<GradientResult> Wait(uint64_t turn) {
    return workers_[WorkerOf(turn).value]->Wait();
  }
  // Applies the pushes of TURN.
  absl::Status Apply(uint64_t turn);

  const RunSpec& spec_;
  const RunControl& control_;
  const Partition& partition_;
  const std::vector<GroupUpdate>& updates_;
  const ComputeTimes& times_;
  TaskPool& pool_;
  const uint64_t worker_count_;
  const uint64_t staleness_;
  const uint64_t turn_count_;  // of the run
  const ReadForm form_;

  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::unique_ptr<ReplayWorker>> workers_;
  std::deque<Past> past_;
  uint64_t first_past_ = 0;           // the turns that past_.front() contains
  uint64_t begun_ = 0;                // gradients that have begun, in the order of their turns
  uint64_t finished_ = 0;             // gradients that are computed
  uint64_t applied_ = 0;              // turns
  std::vector<absl::Duration> ends_;  // by worker: the end of its gradient
  absl::Duration now_;
  RunRecorder* record_ = nullptr;
};

absl::Status Turns::Prepare() {
  const JobSpec& job = spec_.job;
  ShardOptions options = {.rule = job.rule,
                          .generation = kGeneration,
                          .planned_examples = pool_.own().examples(),
                          .sparse_updates = job.sparse_updates,
                          .staleness = job.staleness,
                          .publish = job.publish};
  if (options.publish.has_value()) options.publish->every = 1;
  std::vector<std::span<const float>> initial;
  for (uint32_t i = 0; i < partition_.tensors().size(); ++i) {
    initial.push_back(pool_.own().initial(i));
  }
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    const ShardId id{s};
    const GroupUpdate& update = updates_[partition_.group(id)];
    shards_.push_back(std::make_unique<Shard>(OptionsOf(partition_, id, options), *update.optimizer,
                                              update.schedule));
    Shard& shard = *shards_.back();
    shard.Apply(SeedEvent{EncodedPayload(client::Fp32Payload(partition_.segments(id), initial),
                                         partition_.value_count(id))});
    for (uint32_t w = 0; w < worker_count_; ++w) shard.Apply(JoinEvent{WorkerId{w}, kIncarnation});
    // The shard accepts pushes when all workers have read.
    for (uint32_t w = 0; w < worker_count_; ++w) {
      shard.Apply(ReadEvent{WorkerId{w}, kIncarnation, kGeneration, Step{0}, form_});
    }
  }
  for (uint32_t w = 0; w < worker_count_; ++w) {
    const ClientOptions client = MakeClientOptions(job, {.worker = WorkerId{w},
                                                         .planned_examples = pool_.own().examples(),
                                                         .planned_steps = pool_.own().steps()});
    ASSIGN_OR_RETURN(auto worker, ReplayWorker::Make(partition_, client, job.task.local));
    workers_.push_back(std::move(worker));
  }
  ends_.resize(worker_count_);
  return absl::OkStatus();
}

void Turns::KeepPast() {
  Past past = {.when = now_};
  for (uint32_t s = 0; s < shards_.size(); ++s) {
    const ShardId id{s};
    Shard& shard = *shards_[s];
    past.values.push_back(ReadableValues(shard, spec_.job, partition_.value_count(id)));
    past.versions.push_back(ReadableVersion(shard, spec_.job));
    const bool first = past_.empty();
    const std::optional<Version> held =
        first ? std::nullopt : std::optional(past_.back().versions[s]);
    past.read_bytes += ReadBytes(shard, spec_.job, held);
  }
  past_.push_back(std::move(past));
  // A worker counts the bytes since its last turn.
  if (past_.size() <= staleness_ + worker_count_ + 1) return;
  past_.pop_front();
  ++first_past_;
}

void Turns::Begin() {
  while (begun_ < turn_count_ && SourceOf(begun_) <= applied_ &&
         begun_ < applied_ + worker_count_) {
    const uint64_t turn = begun_++;
    const uint64_t source = SourceOf(turn);
    const WorkerId worker = WorkerOf(turn);
    const Step step = StepOf(turn);
    if (!spec_.job.publish.has_value() || step == Step{}) {
      record_->Pulled(After(source).read_bytes);
    } else {
      const uint64_t read = SourceOf(turn - worker_count_);  // the worker has these parameters
      for (uint64_t t = read + 1; t <= source; ++t) record_->Pulled(After(t).read_bytes);
    }
    absl::Duration& end = ends_[worker.value];
    const absl::Duration begin = std::max(end, After(source).when);
    const uint64_t passes = pool_.own().pass_count(worker, step);
    const absl::Duration time = times_.OfJobStep(spec_.job, worker, step, passes, begin);
    end = begin + time;
    record_->Began(worker, time);
    ReplayWorker& computes = *workers_[worker.value];
    for (uint32_t s = 0; s < shards_.size(); ++s) {
      computes.Read(ShardId{s}, step, After(source).values[s]);
    }
    computes.Start(pool_);
  }
}

absl::Status Turns::Apply(uint64_t turn) {
  const WorkerId id = WorkerOf(turn);
  ReplayWorker& worker = *workers_[id.value];
  now_ = std::max(now_, ends_[id.value]);
  for (uint32_t s = 0; s < shards_.size(); ++s) {
    const ShardId shard{s};
    const PushEntry& entry = worker.Push(shard);
    PushEvent push = {.worker = id,
                      .incarnation = kIncarnation,
                      .generation = kGeneration,
                      .step = entry.step,
                      .examples = entry.examples,
                      .late_examples = entry.late_examples,
                      .computed_version = After(SourceOf(turn)).versions[s],
                      .read_form = form_};
    if (push.examples > 0) {
      push.payload = EncodedPayload(entry.payload, partition_.value_count(shard));
    }
    record_->Pushed(entry.payload.size());
    const Event event = std::move(push);
    const Effects effects = shards_[s]->Apply(event);
    record_->Applied(shard, event, effects);
    RETURN_IF_ERROR(worker.Judged(shard, effects.judgement->verdict));
  }
  ++applied_;
  KeepPast();
  if (StepOf(turn).value + 1 == pool_.own().steps()) record_->Finished(id);
  return absl::OkStatus();
}

absl::StatusOr<RunResult> Turns::Run() {
  std::vector<const Shard*> shards;
  for (const auto& shard : shards_) shards.push_back(shard.get());
  RunRecorder record(
      {.worker_count = static_cast<uint32_t>(worker_count_),
       .examples = pool_.own().examples(),
       .tests = spec_.tests,
       .finished_steps = [this] { return StepOf(applied_); }},
      partition_, shards, [this] { return now_; }, pool_);
  record_ = &record;
  KeepPast();
  while (applied_ < turn_count_) {
    Begin();
    ASSIGN_OR_RETURN(const GradientResult gradient, Wait(finished_++));
    record.Computed(gradient);
    RETURN_IF_ERROR(Apply(applied_));
    if (control_.progress != nullptr && !control_.progress(record.done())) {
      return absl::CancelledError("the run was stopped");
    }
  }
  return record.Finish();
}

}  // namespace

absl::StatusOr<RunResult> RunImposedStaleness(const RunSpec& spec, const MakeLearningTask& task,
                                              const RunControl& control) {
  RETURN_IF_ERROR(CheckSupported(spec));
  ASSIGN_OR_RETURN(const RunParts parts, MakeRunParts(spec, task, control.threads));
  ASSIGN_OR_RETURN(const std::vector<GroupUpdate> updates,
                   MakeGroupUpdates(spec.job.AllGroups(), spec.job.schedule));
  Turns turns(spec, control, parts, updates);
  RETURN_IF_ERROR(turns.Prepare());
  return turns.Run();
}

}  // namespace thinwire::lab
