#include "server/protocols/checkpoints/checkpointer.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace thinwire {
namespace {

constexpr absl::Duration kFirstInterval = absl::Seconds(10);
constexpr absl::Duration kShortestInterval = absl::Seconds(1);

}  // namespace

absl::Duration AutomaticInterval(std::optional<absl::Duration> cost,
                                 absl::Duration failure_interval) {
  if (!cost.has_value()) return kFirstInterval;
  const double seconds =
      std::sqrt(2 * absl::ToDoubleSeconds(*cost) * absl::ToDoubleSeconds(failure_interval));
  return std::max(kShortestInterval, absl::Seconds(seconds));
}

Checkpointer::Checkpointer(Files& files, Options options, Journal& journal, Clock& clock,
                           Executor& control, std::unique_ptr<Executor> writer,
                           std::function<Checkpoint()> head, Ended ended)
    : files_(files),
      options_(std::move(options)),
      journal_(journal),
      clock_(clock),
      control_(control),
      head_(std::move(head)),
      ended_(std::move(ended)),
      kept_{.retention = options_.retention},
      stored_(ReadStored()),
      writer_(std::move(writer)) {
  if (options_.awaits_keep) kept_.retention.newest_count = std::numeric_limits<uint32_t>::max();
}

absl::Duration Checkpointer::interval() const {
  if (options_.interval > absl::ZeroDuration()) return options_.interval;
  return AutomaticInterval(cost_, options_.failure_interval);
}

void Checkpointer::StartIfDue(absl::Time now, const HostedModel& model) {
  if (now - last_start_ < interval() || queued_count_ > 0) return;
  // The first checkpoint follows one interval after the start.
  const bool first = std::exchange(last_start_, now) == absl::InfinitePast();
  if (!first) Start(model, Step{});
}

void Checkpointer::StartLast(const HostedModel& model) {
  // A checkpoint without shards belongs to an announced step.
  if (model.hosts().empty()) return;
  if (!saving_) {
    Start(model, Step{});
    return;
  }
  SaveEarly(model);
}

void Checkpointer::SaveEarly(const HostedModel& model) {
  for (const auto& host : model.hosts()) {
    host->Post([&host = *host](Shard&) { host.SaveEarly(); });
  }
}

bool Checkpointer::Start(const HostedModel& model, Step from) {
  if (saving_ || rolled_back_) return false;
  if (!can_save(model)) return false;
  saving_ = true;
  // Before the shards copy their arrays again: the memory plan has room for one snapshot.
  if (options_.snapshot != nullptr) options_.snapshot->reset();
  newest_from_ = std::max(from, newest_from_.value_or(from));
  const auto saved = [this, from, number = ++started_count_](std::vector<SavedShard> shards) {
    control_.Post([this, from, number, shards = std::move(shards)]() mutable {
      Complete(std::move(shards), from, number);
    });
  };
  if (model.hosts().empty()) {
    saved({});
    return true;
  }
  const auto gather = std::make_shared<Gather<SavedShard>>(model.hosts().size(), saved);
  const LogSequence durable = journal_.durable();
  for (size_t i = 0; i < model.hosts().size(); ++i) {
    ShardHost& host = *model.hosts()[i];
    host.Post([&host, gather, durable, from, i](Shard&) {
      host.SaveWhenPossible(durable, from,
                            [gather, i](SavedShard shard) { gather->Set(i, std::move(shard)); });
    });
  }
  return true;
}

void Checkpointer::Complete(std::vector<SavedShard> shards, Step from, uint64_t number) {
  saving_ = false;
  if (rolled_back_) return;
  Checkpoint checkpoint = head_();
  checkpoint.shards = std::move(shards);
  checkpoint.test = std::exchange(test_, std::nullopt);
  // A server without shards is in the state of every step.
  checkpoint.step = checkpoint.shards.empty() ? from : CommonFrontier(checkpoint.shards);
  // The shards were saved early. A later call of Start may name the step again.
  if (checkpoint.step.has_value() && *checkpoint.step < from) newest_from_ = checkpoint.step;
  LogSequence applied = checkpoint.shards.empty() ? 0 : checkpoint.shards.front().applied;
  for (const SavedShard& shard : checkpoint.shards) applied = std::min(applied, shard.applied);
  checkpoint.next = applied + 1;
  if (options_.snapshot != nullptr) {
    *options_.snapshot = std::make_shared<const Checkpoint>(checkpoint);  // shares the arrays
  }
  ++queued_count_;
  writer_->Post([this, checkpoint = std::move(checkpoint), kept = kept_, start = clock_.Now(),
                 number] { Write(checkpoint, kept, start, number); });
}

void Checkpointer::Write(const Checkpoint& checkpoint, const KeptCheckpoints& kept,
                         absl::Time start, uint64_t number) {
  const TraceSpan span(options_.tracer, "checkpoints", "write checkpoint",
                       {.step = checkpoint.step});
  const absl::Status written = WriteCheckpoint(files_, options_.folder, checkpoint, kept);
  if (written.ok()) {
    if (!options_.keep_log) journal_.RemoveBefore(checkpoint.next);
  } else {
    if (const auto more = failure_lines_.Next(clock_.Now())) {
      LOG(ERROR) << "no checkpoint written, the older ones remain: " << written.message() << *more;
    }
  }
  SavedSteps saved;
  for (const SavedShard& shard : checkpoint.shards) {
    const Step frontier = shard.state.frontier;
    saved.least = std::min(frontier, saved.least.value_or(frontier));
    saved.largest = std::max(frontier, saved.largest.value_or(frontier));
  }
  control_.Post([this, written, saved, number, cost = clock_.Now() - start, bytes = NewestBytes(),
                 stored = ReadStored()] {
    --queued_count_;
    stored_ = stored;
    if (!written.ok()) {
      ++failed_count_;
      return ended_(number, written);
    }
    ++completed_count_;
    cost_ = cost;
    total_time_ += cost;
    total_bytes_ += bytes;
    ended_(number, saved);
  });
}

void Checkpointer::FillIn(StatusReply& reply) const {
  reply.set_checkpoints(completed_count_);
  reply.set_failed_checkpoints(failed_count_);
  reply.set_checkpoint_seconds(absl::ToDoubleSeconds(total_time_));
  reply.set_checkpoint_bytes(total_bytes_);
}

void Checkpointer::RollBack(Step step, Generation generation,
                            std::function<void(const absl::Status&)> done) {
  rolled_back_ = true;
  if (options_.snapshot != nullptr) {
    const std::shared_ptr<const Checkpoint> kept = std::exchange(*options_.snapshot, nullptr);
    if (kept != nullptr && kept->step == step) {
      const auto returns_to = std::make_shared<Checkpoint>(*kept);
      returns_to->run.generation = generation;
      *options_.snapshot = returns_to;
      return control_.Post([done = std::move(done)] { done(absl::OkStatus()); });
    }
  }
  writer_->Post([this, step, generation, done = std::move(done)] {
    const absl::Status status = ContinueFrom(files_, options_.folder, step, generation);
    control_.Post([done, status] { done(status); });
  });
}

uint64_t Checkpointer::NewestBytes() const {
  const auto name = NewestCheckpoint(files_, options_.folder);
  if (!name.ok()) return 0;
  const auto manifest = ReadManifest(files_, options_.folder, *name);
  if (!manifest.ok()) return 0;
  uint64_t bytes = 0;
  for (const auto& shard : manifest->shards()) bytes += shard.file_bytes();
  return bytes;
}

Checkpointer::Stored Checkpointer::ReadStored() {
  Stored stored;
  const auto all = ListManifests(files_, options_.folder);
  if (!all.ok()) {
    if (const auto more = failure_lines_.Next(clock_.Now())) {
      LOG(WARNING) << "cannot list the checkpoints: " << all.status().message() << *more;
    }
    return stored;
  }
  for (const AlignedCheckpoint& checkpoint : AlignedCheckpoints(*all)) {
    stored.steps.push_back(checkpoint.step);
  }
  stored.tested = TestedCheckpoints(*all);
  return stored;
}

}  // namespace thinwire
