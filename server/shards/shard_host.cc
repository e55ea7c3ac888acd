#include "server/shards/shard_host.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/status_macros.h"
#include "server/shards/convert.h"
#include "server/shards/stream/publish_newest.h"

namespace thinwire {
namespace {

constexpr char kLane[] = "shards";  // of the trace

}  // namespace

absl::Status ShardHost::Restore(const SavedShard& saved) {
  applied_ = saved.applied;
  RETURN_IF_ERROR(shard_.Restore(saved.state));
  frontier_ = saved.state.frontier.value;
  StoreAllProgress();
  if (observer_ != nullptr) observer_->OnRestored(id_, shard_, applied_);
  return absl::OkStatus();
}

void ShardHost::Replay(LogSequence sequence, const Event& event) {
  if (sequence <= applied_) return;
  const Effects effects = shard_.Apply(event);
  if (observer_ != nullptr) observer_->OnApplied(id_, event, effects, shard_, sequence);
  StoreProgress(event);
  frontier_ = shard_.frontier().value;
  applied_ = sequence;
}

void ShardHost::StoreProgress(const Event& event) {
  // Only reads and pushes change a worker's next step.
  if (const auto* push = std::get_if<PushEvent>(&event)) StoreProgress(push->worker);
  if (const auto* read = std::get_if<ReadEvent>(&event)) StoreProgress(read->worker);
  open_ = shard_.open();
}

void ShardHost::StoreProgress(WorkerId worker) {
  const uint64_t next = shard_.next(worker).value;
  next_[worker.value] = next;
  largest_next_ = std::max(largest_next_.load(), next);
}

void ShardHost::StoreAllProgress() {
  largest_next_ = 0;
  for (uint32_t w = 0; w < next_.size(); ++w) StoreProgress(WorkerId{w});
  open_ = shard_.open();
}

void ShardHost::SaveWhenPossible(LogSequence durable, Step from,
                                 std::function<void(SavedShard)> saved) {
  // The records up to DURABLE that concern this shard were posted to the strand before this call.
  applied_ = std::max(applied_, durable);
  saved_ = std::move(saved);
  save_from_ = from;
  SaveIfPossible();
}

void ShardHost::SaveEarly() {
  save_from_ = Step{};
  SaveIfPossible();
}

void ShardHost::SaveIfPossible() {
  if (saved_ == nullptr || !shard_.CanSave() || shard_.frontier() < save_from_) return;
  std::exchange(saved_, nullptr)({.shard = id_, .applied = applied_, .state = shard_.Save()});
}

Effects ShardHost::Fold(const Event& event) {
  const auto* push = std::get_if<PushEvent>(&event);
  if (tracer_ == nullptr || push == nullptr) return shard_.Apply(event);
  const TraceSpan span(tracer_, kLane, "fold",
                       {.step = push->step, .shard = id_, .worker = push->worker});
  return shard_.Apply(event);
}

void ShardHost::SendAnswers(const std::vector<ReadAnswer>& answers, StreamBatch* batch) {
  if (answers.empty()) return;
  const TraceSpan span(tracer_, kLane, "encode parameters",
                       {.step = answers[0].step, .shard = id_});
  for (const ReadAnswer& answer : answers) {
    // If the reading worker has no stream, the answer is dropped: the worker sends the read again
    // when it opens a new stream.
    const auto stream = streams_.Find(answer.worker, answer.incarnation, id_);
    if (stream == nullptr) continue;
    const absl::Time begin = clock_.Now();
    PublishNewest(shard_, answer.form, slots_);
    encode_nanos_ += NanosecondsSince(begin);
    stream->AddAnswer(id_, answer.step, answer.form, slots_,
                      {static_cast<uint32_t>(answer.last - answer.step), answer.holds_pushes},
                      batch);
  }
}

Effects ShardHost::Apply(const Event& event, ServerStream* sender, LogSequence sequence,
                         StreamBatch* batch) {
  const uint64_t saturated_updates = shard_.saturated_updates();
  const Version version = shard_.version();
  const Step frontier = shard_.frontier();
  const absl::Time begin = clock_.Now();
  Effects effects = Fold(event);
  if (shard_.version() != version || shard_.frontier() != frontier) progress_.Add(begin);
  // The update of a full round follows its SumEvent.
  const bool folds =
      std::holds_alternative<PushEvent>(event) || std::holds_alternative<SumEvent>(event);
  if (folds) decode_nanos_ += NanosecondsSince(begin);
  StoreProgress(event);
  frontier_.store(shard_.frontier().value, std::memory_order_relaxed);
  counters_.Count(effects);
  if (observer_ != nullptr) observer_->OnApplied(id_, event, effects, shard_, sequence);
  applied_effects_(id_, effects);
  if (step_times_.has_value()) step_times_->Record(event, effects, clock_.Now());
  if (const auto* seed = std::get_if<SeedEvent>(&event)) {
    counters_.Update([bytes = seed->payload.bytes().size()](StatusReply& counts) {
      counts.set_seed_payload_bytes(counts.seed_payload_bytes() + bytes);
    });
  }
  ReportSaturation(saturated_updates);
  if (effects.judgement.has_value() && sender != nullptr) {
    sender->AddVerdict(VerdictEntryOf(id_, *effects.judgement), batch);
  }
  SendAnswers(effects.answers, batch);
  if (!shard_.seeded()) {
    // A worker whose lease has run out may never send the values, although its stream is open.
    const auto* expired = std::get_if<ExpireEvent>(&event);
    if (expired != nullptr && seeder_.has_value() && seeder_->worker == expired->worker) {
      seeder_->stream.reset();
    }
    AskForValues();
  }
  return effects;
}

void ShardHost::ReportSaturation(uint64_t counted) {
  if (const uint64_t added = shard_.saturated_updates() - counted; added > 0) {
    counters_.Update([added](StatusReply& counts) {
      counts.set_saturated_updates(counts.saturated_updates() + added);
    });
  }
  if (shard_.saturated() == saturated_) return;
  saturated_ = shard_.saturated();
  if (saturated_) {
    // Pushes can begin and end the state at any rate. The status has the count of each shard.
    LOG_EVERY_T(WARNING, 1)
        << "shard " << id_.value << ": update " << shard_.version().value
        << " limited a parameter or an optimizer slot to the largest float (3.4e38); "
           "the run has probably diverged";
  }
}

const StepTimes& ShardHost::MeasureSteps() {
  if (!step_times_.has_value()) step_times_.emplace(static_cast<uint32_t>(next_.size()));
  return *step_times_;
}

void ShardHost::SendWaitNotices() {
  AskForValues();
  for (const BlockedRead& read : shard_.BlockedReads()) {
    const auto stream = streams_.Find(read.worker, read.incarnation, id_);
    if (stream == nullptr) continue;
    WaitingEntry entry = WaitingEntryOf(id_, read);
    entry.seed = !shard_.seeded() && IsSeeder(stream);
    stream->AddWaiting(entry);
  }
}

void ShardHost::AskForValues() {
  if (shard_.seeded()) return;
  std::vector<BlockedRead> reads = shard_.BlockedReads();  // in ascending order of the workers
  if (seeder_.has_value()) {
    // The worker after the last one comes first.
    const auto next = std::ranges::upper_bound(reads, seeder_->worker, {}, &BlockedRead::worker);
    std::ranges::rotate(reads, next);
  }
  std::shared_ptr<ServerStream> first;
  const BlockedRead* chosen = nullptr;
  for (const BlockedRead& read : reads) {
    auto stream = streams_.Find(read.worker, read.incarnation, id_);
    if (IsSeeder(stream)) return;
    if (first == nullptr && stream != nullptr) {
      first = std::move(stream);
      chosen = &read;
    }
  }
  if (chosen == nullptr) return;
  seeder_ = Seeder{chosen->worker, first};
  WaitingEntry entry = WaitingEntryOf(id_, *chosen);
  entry.seed = true;
  first->AddWaiting(entry);
}

}  // namespace thinwire
