#include "experiments/replay/replay.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/codec/payload.h"
#include "common/status_macros.h"
#include "common/text/problems.h"
#include "experiments/cluster/event_queue.h"
#include "experiments/cluster/run_record.h"
#include "experiments/cluster/task_pool.h"
#include "experiments/replay/read_positions.h"
#include "experiments/replay/replay_worker.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/core/shard.h"
#include "server/edge/model/shard_options.h"
#include "worker/client_options.h"

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
  want(job.task.seed == recorded.task.seed, "seed", absl::StrCat(recorded.task.seed));
  want(job.task.epochs == recorded.task.epochs, "epochs", absl::StrCat(recorded.task.epochs));
  if (what == ReplayOf::kGradients) {
    want(job.rule.fold == Fold::kPush, "mode", "ssp or async, to compute gradients again");
    want(!job.push.choose.has_value(), "push", "one codec, to compute gradients again");
  }
  return problems.ToStatus();
}

class Replay {
 public:
  Replay(const Recording& recording, ReplayOf what, const RunSpec& spec, const RunControl& control,
         const Optimizer& optimizer, const Schedule& schedule, TaskPool& pool)
      : recording_(recording),
        what_(what),
        spec_(spec),
        control_(control),
        optimizer_(optimizer),
        schedule_(schedule),
        pool_(pool) {}

  // Makes the shards, and the workers if they compute gradients.
  absl::Status Prepare();
  absl::StatusOr<RunResult> Run();

 private:
  struct ReplayShard {
    std::unique_ptr<Shard> shard;
    size_t next_event = 0;
    std::vector<ReadPosition> reads;
    size_t next_read = 0;
  };

  std::unique_ptr<Shard> MakeShard(const JobSpec& job, const Optimizer& optimizer,
                                   const Schedule& schedule, ShardId shard) const;
  // Applies the events of SHARD until one needs a push that is not computed yet. Returns the number of
  // applied events.
  absl::StatusOr<uint64_t> Advance(ShardId shard);
  absl::Status Apply(ShardId shard, const Event& event, bool computed);
  // Gives the workers the parameters that they read after the last event of SHARD.
  void ReadNow(ShardId shard);
  // Waits for the gradient that was begun first.
  absl::Status FinishOldest();
  absl::Status RunEvents(RunRecord& record);
  Step FinishedSteps() const;

  const Recording& recording_;
  const ReplayOf what_;
  const RunSpec& spec_;
  const RunControl& control_;
  const Optimizer& optimizer_;
  const Schedule& schedule_;
  TaskPool& pool_;

  std::vector<ReplayShard> shards_;
  std::vector<std::unique_ptr<ReplayWorker>> workers_;  // empty: recorded payloads
  std::deque<ReplayWorker*> computing_;                 // in the order in which they began
  RunRecord* record_ = nullptr;
};

std::unique_ptr<Shard> Replay::MakeShard(const JobSpec& job, const Optimizer& optimizer,
                                         const Schedule& schedule, ShardId shard) const {
  const ShardOptions options = {.rule = job.rule,
                                .generation = recording_.generation,
                                .planned_examples = recording_.planned_examples,
                                .sparse_updates = job.sparse_updates,
                                .publish = job.publish};
  return std::make_unique<Shard>(OptionsOf(recording_.partition, shard, options), optimizer,
                                 schedule);
}

absl::Status Replay::Prepare() {
  RETURN_IF_ERROR(CheckChange(recording_.job, spec_.job, what_));
  for (uint32_t s = 0; s < recording_.partition.shard_count(); ++s) {
    shards_.push_back({.shard = MakeShard(spec_.job, optimizer_, schedule_, ShardId{s})});
  }
  if (what_ == ReplayOf::kPayloads) return absl::OkStatus();
  const JobSpec& recorded = recording_.job;
  ASSIGN_OR_RETURN(const auto optimizer, MakeOptimizer(recorded.optimizer));
  ASSIGN_OR_RETURN(const Schedule schedule, Schedule::Make(recorded.schedule));
  for (uint32_t s = 0; s < shards_.size(); ++s) {
    const std::unique_ptr<Shard> shard = MakeShard(recorded, *optimizer, schedule, ShardId{s});
    auto reads = ReadPositionsOf(recording_.events[s], recorded, *shard);
    if (!reads.ok()) {
      return absl::Status(reads.status().code(),
                          absl::StrCat("shard ", s, ": ", reads.status().message()));
    }
    shards_[s].reads = *std::move(reads);
  }
  for (uint32_t w = 0; w < spec_.job.rule.workers; ++w) {
    const ClientOptions options =
        MakeClientOptions(spec_.job, {.worker = WorkerId{w},
                                      .planned_examples = recording_.planned_examples,
                                      .planned_steps = pool_.own().steps()});
    ASSIGN_OR_RETURN(auto worker, ReplayWorker::Make(recording_.partition, options));
    workers_.push_back(std::move(worker));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Replay::Advance(ShardId shard) {
  ReplayShard& replayed = shards_[shard.value];
  const std::vector<Event>& events = recording_.events[shard.value];
  uint64_t applied_count = 0;
  for (; replayed.next_event < events.size(); ++applied_count) {
    const Event& event = events[replayed.next_event];
    const auto* push = std::get_if<PushEvent>(&event);
    // A repeated push is judged without its payload.
    const bool computed = push != nullptr && !workers_.empty() &&
                          !workers_[push->worker.value]->WasJudged(shard, push->step);
    if (computed && !workers_[push->worker.value]->HasPush(shard, push->step)) break;
    RETURN_IF_ERROR(Apply(shard, event, computed));
    ReadNow(shard);
    ++replayed.next_event;
  }
  return applied_count;
}

absl::Status Replay::Apply(ShardId shard, const Event& event, bool computed) {
  const auto apply = [&](const Event& applied) {
    const Effects effects = shards_[shard.value].shard->Apply(applied);
    // A push that was sent again is counted once.
    if (effects.judgement.has_value() && effects.judgement->again) return effects;
    if (const auto* push = std::get_if<PushEvent>(&applied)) {
      record_->Pushed(push->payload.bytes().size());
    }
    record_->Applied(shard, applied, effects);
    return effects;
  };
  if (!computed) {
    apply(event);
    return absl::OkStatus();
  }
  PushEvent push = std::get<PushEvent>(event);
  ReplayWorker& worker = *workers_[push.worker.value];
  const PushEntry& entry = worker.Push(shard);
  push.examples = entry.examples;
  push.late_examples = entry.late_examples;
  push.computed_version = entry.computed_version;
  push.payload = {};
  if (push.examples > 0) {
    push.payload = EncodedPayload(entry.payload, recording_.partition.value_count(shard));
  }
  const Effects effects = apply(push);
  return worker.Judged(shard, effects.judgement->verdict);
}

void Replay::ReadNow(ShardId shard) {
  ReplayShard& replayed = shards_[shard.value];
  std::vector<float> values;  // what all readers of this state receive
  for (; replayed.next_read < replayed.reads.size(); ++replayed.next_read) {
    const ReadPosition& read = replayed.reads[replayed.next_read];
    if (read.event != replayed.next_event) break;
    if (values.empty() && spec_.job.publish.has_value()) {
      values.assign(replayed.shard->published().begin(), replayed.shard->published().end());
    } else if (values.empty()) {
      values.resize(recording_.partition.value_count(shard));
      DecodePayload(EncodedPayload(replayed.shard->Encoded(spec_.job.pull_codec), values.size()),
                    values);
    }
    ReplayWorker& worker = *workers_[read.worker.value];
    if (worker.Read(shard, read.step, values, ReadableVersion(*replayed.shard, spec_.job))) {
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

absl::Status Replay::RunEvents(RunRecord& record) {
  while (true) {
    uint64_t applied_count = 0;
    for (uint32_t s = 0; s < shards_.size(); ++s) {
      ASSIGN_OR_RETURN(const uint64_t count, Advance(ShardId{s}));
      applied_count += count;
    }
    if (control_.progress != nullptr && !control_.progress(record.done())) {
      return absl::CancelledError("the replay was stopped");
    }
    if (!computing_.empty()) {
      RETURN_IF_ERROR(FinishOldest());
    } else if (applied_count == 0) {
      break;
    }
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
  EventQueue queue;  // stays at its beginning: a recording has no times
  std::vector<const Shard*> shards;
  for (const ReplayShard& replayed : shards_) shards.push_back(replayed.shard.get());
  RunRecord record({.worker_count = spec_.job.rule.workers,
                    .examples = recording_.planned_examples,
                    .tests = spec_.tests,
                    .finished_steps = [this] { return FinishedSteps(); }},
                   recording_.partition, shards, queue, pool_);
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
  ASSIGN_OR_RETURN(const auto optimizer, MakeOptimizer(spec.job.optimizer));
  ASSIGN_OR_RETURN(const Schedule schedule, Schedule::Make(spec.job.schedule));
  ASSIGN_OR_RETURN(const std::unique_ptr<TaskPool> pool, TaskPool::Make(task, control.threads));
  Replay replay(recording, what, spec, control, *optimizer, schedule, *pool);
  RETURN_IF_ERROR(replay.Prepare());
  return replay.Run();
}

}  // namespace thinwire::lab
