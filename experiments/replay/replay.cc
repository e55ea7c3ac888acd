#include "experiments/replay/replay.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/options/job_client_options.h"
#include "common/base/status_macros.h"
#include "common/codec/payload.h"
#include "common/spec/place_tensors.h"
#include "common/text/problems.h"
#include "experiments/cluster/run_recorder.h"
#include "experiments/cluster/task_pool.h"
#include "experiments/replay/read_positions.h"
#include "experiments/replay/readable_values.h"
#include "experiments/replay/replay_worker.h"
#include "server/core/optimizer/group_updates.h"
#include "server/core/shard.h"
#include "server/shards/shard_options.h"

namespace thinwire::lab {
namespace {

// The recorded events belong to the shards, workers and batches of the recorded job.
absl::Status CheckChange(const JobSpec& recorded, const JobSpec& job, ReplayOf what) {
  Problems problems;
  const auto want = [&](bool holds, std::string_view field, absl::string_view expected) {
    if (!holds) {
      problems.Add(field, absl::StrCat("cannot change in a replay (expected ", expected, ")"));
    }
  };
  want(job.server_count == recorded.server_count, "servers", absl::StrCat(recorded.server_count));
  want(job.shard_size == recorded.shard_size, "shard_size", absl::StrCat(recorded.shard_size));
  want(job.rule.workers == recorded.rule.workers, "workers", absl::StrCat(recorded.rule.workers));
  want(job.rule.mode() == recorded.rule.mode(), "mode",
       absl::string_view(recorded.rule.mode().data(), recorded.rule.mode().size()));
  want(job.task.batch_size == recorded.task.batch_size, "batch_size",
       absl::StrCat(recorded.task.batch_size));
  want(job.task.accumulate == recorded.task.accumulate, "accumulate",
       absl::StrCat(recorded.task.accumulate));
  want(job.task.local.count == recorded.task.local.count, "local_steps",
       absl::StrCat(recorded.task.local.count));
  want(job.task.seed == recorded.task.seed, "seed", absl::StrCat(recorded.task.seed));
  want(job.task.epochs == recorded.task.epochs, "epochs", absl::StrCat(recorded.task.epochs));
  if (what == ReplayOf::kGradients) {
    want(job.rule.fold == Fold::kPush, "mode", "ssp or async, to compute gradients again");
    want(!job.push.choose.has_value(), "push", "one codec, to compute gradients again");
  }
  return problems.ToStatus();
}

// Checks that every worker was one process from its first to its last step. Another process has no
// residual, and a changed number of workers deals the examples anew.
absl::Status CheckWorkers(const Recording& recording) {
  std::map<WorkerId, Incarnation> processes;
  for (const std::vector<Event>& events : recording.events) {
    for (const Event& event : events) {
      if (std::holds_alternative<RuleEvent>(event)) {
        return absl::FailedPreconditionError(
            "the number of workers was changed during the recorded run");
      }
      const auto* push = std::get_if<PushEvent>(&event);
      if (push == nullptr) continue;
      if (push->worker.value >= recording.job.rule.workers) {
        return absl::FailedPreconditionError(
            absl::StrCat("worker ", push->worker.value, " is not a worker of the recorded job"));
      }
      if (processes.emplace(push->worker, push->incarnation).first->second != push->incarnation) {
        return absl::FailedPreconditionError(
            absl::StrCat("worker ", push->worker.value, " was restarted during the recorded run"));
      }
    }
  }
  return absl::OkStatus();
}

class Replay {
 public:
  Replay(const Recording& recording, ReplayOf what, const RunSpec& spec, const RunControl& control,
         const std::vector<GroupUpdate>& updates, TaskPool& pool)
      : recording_(recording),
        what_(what),
        spec_(spec),
        control_(control),
        updates_(updates),
        pool_(pool) {}

  // Makes the shards, and the workers if they compute gradients.
  absl::Status Prepare();
  absl::StatusOr<RunResult> Run();

 private:
  // A worker at one shard.
  struct Reader {
    Step next;        // of its next push that was not sent before
    Version version;  // of the parameters that it has read for that push
  };
  struct ReplayShard {
    std::unique_ptr<Shard> shard;
    size_t next_event = 0;
    std::vector<ReadPosition> reads;
    size_t next_read = 0;
    std::vector<Reader> readers;  // by worker
  };

  std::unique_ptr<Shard> MakeShard(const JobSpec& job, const std::vector<GroupUpdate>& updates,
                                   ShardId shard) const;
  // Applies the next events of SHARD, up to one push. Returns false if it can apply none: its next
  // push is not computed yet, or it has no more events.
  absl::StatusOr<bool> Advance(ShardId shard);
  // Applies PUSH as its worker computes it now, from the parameters that it has read now.
  absl::Status ApplyPush(ShardId shard, PushEvent push);
  Effects Apply(ShardId shard, const Event& event);
  // Gives the workers the parameters that they read after the last event of SHARD.
  void ReadNow(ShardId shard);
  // Waits for the gradient that was begun first.
  absl::Status FinishOldest();
  absl::Status RunEvents(RunRecorder& record);
  Step FinishedSteps() const;

  const Recording& recording_;
  const ReplayOf what_;
  const RunSpec& spec_;
  const RunControl& control_;
  const std::vector<GroupUpdate>& updates_;
  TaskPool& pool_;

  std::vector<ReplayShard> shards_;
  std::vector<std::unique_ptr<ReplayWorker>> workers_;  // empty: recorded payloads
  std::deque<ReplayWorker*> computing_;                 // in the order in which they began
  RunRecorder* record_ = nullptr;
};

std::unique_ptr<Shard> Replay::MakeShard(const JobSpec& job,
                                         const std::vector<GroupUpdate>& updates,
                                         ShardId shard) const {
  const ShardOptions options = {.rule = job.rule,
                                .generation = recording_.generation,
                                .planned_examples = recording_.planned_examples,
                                .sparse_updates = job.sparse_updates,
                                .staleness = job.staleness,
                                .publish = job.publish};
  const GroupUpdate& update = updates[recording_.partition.group(shard)];
  return std::make_unique<Shard>(OptionsOf(recording_.partition, shard, options), *update.optimizer,
                                 update.schedule);
}

absl::Status Replay::Prepare() {
  const JobSpec& recorded = recording_.job;
  RETURN_IF_ERROR(CheckChange(recorded, spec_.job, what_));
  if (what_ == ReplayOf::kGradients) RETURN_IF_ERROR(CheckWorkers(recording_));
  ASSIGN_OR_RETURN(const std::vector<GroupUpdate> updates,
                   MakeGroupUpdates(recorded.AllGroups(), recorded.schedule));
  for (uint32_t s = 0; s < recording_.partition.shard_count(); ++s) {
    const std::unique_ptr<Shard> shard = MakeShard(recorded, updates, ShardId{s});
    auto reads = ReadPositionsOf(recording_.events[s], recorded, *shard);
    if (!reads.ok()) {
      return absl::Status(reads.status().code(),
                          absl::StrCat("shard ", s, ": ", reads.status().message()));
    }
    shards_.push_back({.shard = MakeShard(spec_.job, updates_, ShardId{s}),
                       .reads = *std::move(reads),
                       .readers = std::vector<Reader>(recorded.rule.max_workers)});
  }
  if (what_ == ReplayOf::kPayloads) return absl::OkStatus();
  for (uint32_t w = 0; w < spec_.job.rule.workers; ++w) {
    const ClientOptions options =
        MakeClientOptions(spec_.job, {.worker = WorkerId{w},
                                      .planned_examples = recording_.planned_examples,
                                      .planned_steps = pool_.own().steps()});
    ASSIGN_OR_RETURN(auto worker,
                     ReplayWorker::Make(recording_.partition, options, spec_.job.task.local));
    workers_.push_back(std::move(worker));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Replay::Advance(ShardId shard) {
  ReplayShard& replayed = shards_[shard.value];
  const std::vector<Event>& events = recording_.events[shard.value];
  const size_t first = replayed.next_event;
  bool pushed = false;
  while (replayed.next_event < events.size() && !pushed) {
    const Event& event = events[replayed.next_event];
    const auto* push = std::get_if<PushEvent>(&event);
    // A push that was sent again gets its stored verdict, whatever its payload is.
    if (push == nullptr || push->step < replayed.readers[push->worker.value].next) {
      Apply(shard, event);
    } else if (workers_.empty() || workers_[push->worker.value]->HasPushes(push->step)) {
      RETURN_IF_ERROR(ApplyPush(shard, *push));
      pushed = true;
    } else {
      break;
    }
    ReadNow(shard);
    ++replayed.next_event;
  }
  return replayed.next_event > first;
}

Effects Replay::Apply(ShardId shard, const Event& event) {
  Effects effects = shards_[shard.value].shard->Apply(event);
  if (effects.judgement.has_value() && effects.judgement->again) return effects;
  if (const auto* push = std::get_if<PushEvent>(&event)) {
    record_->Pushed(push->payload.bytes().size());
  }
  record_->Applied(shard, event, effects);
  return effects;
}

absl::Status Replay::ApplyPush(ShardId shard, PushEvent push) {
  Reader& reader = shards_[shard.value].readers[push.worker.value];
  reader.next = push.step + 1;
  push.computed_version = reader.version;
  if (workers_.empty()) {
    Apply(shard, push);
    return absl::OkStatus();
  }
  ReplayWorker& worker = *workers_[push.worker.value];
  const PushEntry& entry = worker.Push(shard);
  push.examples = entry.examples;
  push.late_examples = entry.late_examples;
  push.payload = {};
  if (push.examples > 0) {
    push.payload = EncodedPayload(entry.payload, recording_.partition.value_count(shard));
  }
  return worker.Judged(shard, Apply(shard, push).judgement->verdict);
}

void Replay::ReadNow(ShardId shard) {
  ReplayShard& replayed = shards_[shard.value];
  std::vector<float> values;  // the parameters that every reader of this state receives
  for (; replayed.next_read < replayed.reads.size(); ++replayed.next_read) {
    const ReadPosition& read = replayed.reads[replayed.next_read];
    if (read.event != replayed.next_event) break;
    replayed.readers[read.worker.value].version = ReadableVersion(*replayed.shard, spec_.job);
    if (workers_.empty()) continue;
    if (values.empty()) {
      values = ReadableValues(*replayed.shard, spec_.job, recording_.partition.value_count(shard));
    }
    ReplayWorker& worker = *workers_[read.worker.value];
    if (worker.Read(shard, read.step, values)) {
      worker.Start(pool_);
      computing_.push_back(&worker);
    }
  }
}

absl::Status Replay::FinishOldest() {
  ReplayWorker* const worker = computing_.front();
  computing_.pop_front();
  ASSIGN_OR_RETURN(const GradientResult gradient, worker->Wait());
  record_->Computed(gradient);
  return absl::OkStatus();
}

absl::Status Replay::RunEvents(RunRecorder& record) {
  while (true) {
    // The shards take turns, so that none is far ahead when the parameters are tested.
    bool advanced = false;
    for (uint32_t s = 0; s < shards_.size(); ++s) {
      ASSIGN_OR_RETURN(const bool one, Advance(ShardId{s}));
      advanced = advanced || one;
    }
    if (control_.progress != nullptr && !control_.progress(record.done())) {
      return absl::CancelledError("the replay was stopped");
    }
    if (advanced) continue;
    if (computing_.empty()) break;
    RETURN_IF_ERROR(FinishOldest());
  }
  for (uint32_t s = 0; s < shards_.size(); ++s) {
    if (shards_[s].next_event == recording_.events[s].size()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("shard ", s, ": event ", shards_[s].next_event,
                     " waits for a push that no worker can compute"));
  }
  return absl::OkStatus();
}

Step Replay::FinishedSteps() const {
  Step finished = shards_[0].shard->next(WorkerId{0});
  for (uint32_t w = 1; w < spec_.job.rule.workers; ++w) {
    finished = std::min(finished, shards_[0].shard->next(WorkerId{w}));
  }
  return finished;
}

absl::StatusOr<RunResult> Replay::Run() {
  std::vector<const Shard*> shards;
  for (const ReplayShard& replayed : shards_) shards.push_back(replayed.shard.get());
  RunRecorder record(
      {.worker_count = spec_.job.rule.workers,
       .examples = recording_.planned_examples,
       .tests = spec_.tests,
       .finished_steps = [this] { return FinishedSteps(); }},
      recording_.partition, shards,
      [] { return absl::ZeroDuration(); },  // a recording has no times
      pool_);
  record_ = &record;
  const absl::Status status = RunEvents(record);
  // The pool must not compute for workers that are gone.
  while (!computing_.empty()) {
    FinishOldest().IgnoreError();
  }
  RETURN_IF_ERROR(status);
  ASSIGN_OR_RETURN(RunResult result, record.Finish());
  result.set_busy(0);
  return result;
}

}  // namespace

absl::StatusOr<RunResult> RunReplay(const Recording& recording, ReplayOf what, const RunSpec& spec,
                                    const MakeLearningTask& task, const RunControl& control) {
  std::vector<TensorShape> tensors = recording.partition.tensors();
  RETURN_IF_ERROR(PlaceTensors(spec.job.AllGroups(), tensors));
  if (tensors != recording.partition.tensors()) {
    return absl::InvalidArgumentError(
        "parameter_group: other shards than in the recorded run (expected groups with the same "
        "tensors, and lars or lamb only where the recorded run has one of them)");
  }
  ASSIGN_OR_RETURN(const std::vector<GroupUpdate> updates,
                   MakeGroupUpdates(spec.job.AllGroups(), spec.job.schedule));
  ASSIGN_OR_RETURN(const std::unique_ptr<TaskPool> pool, TaskPool::Make(task, control.threads));
  Replay replay(recording, what, spec, control, updates, *pool);
  RETURN_IF_ERROR(replay.Prepare());
  return replay.Run();
}

}  // namespace thinwire::lab
