#include "client/exchange/read_path.h"

#include <glog/logging.h>

#include <utility>

#include "absl/time/time.h"
#include "client/transport/join_leave.h"
#include "common/time/trace.h"
#include "proto/parameter_service.pb.h"
#include "proto/worker_event.pb.h"

namespace thinwire::client {

ReadPath::ReadPath(const ExchangeParts& parts,
                   const std::vector<std::unique_ptr<ServerLink>>& links, GtopkReturns& returns,
                   std::function<void(absl::Status)> fail)
    : parts_(parts),
      links_(links),
      returns_(returns),
      fail_(std::move(fail)),
      works_ahead_(WorksAhead(parts.options)),
      shards_(parts.partition.shard_count()) {}

bool ReadPath::MayUse(const Shard& shard) const {
  return shard.held.has_value() && (shard.exact ? *shard.held : shard.last) >= shard.next;
}

void ReadPath::ReadAll(Step step) {
  step_ = step;
  for (uint32_t s = 0; s < parts_.partition.shard_count(); ++s) {
    const ShardId shard{s};
    shards_[s].next = step;
    shards_[s].held.reset();
    parts_.listener.OnShardExpected(shard);
    MergeKept(shard);
    LinkOf(shard).queue().Read(shard, step);
  }
  for (const std::unique_ptr<ServerLink>& link : links_) link->SendQueued();
}

void ReadPath::ExpectAfterPush(ShardId shard, Step step) {
  step_ = step;
  Shard& slot = shards_[shard.value];
  slot.next = step;
  slot.exact = false;
  parts_.listener.OnShardEncoded(shard);
  if (!MayUse(slot)) parts_.listener.OnShardExpected(shard);
}

void ReadPath::MergeKept(ShardId shard) {
  std::deque<ParametersEntry>& kept = shards_[shard.value].kept;
  while (!kept.empty() && parts_.listener.OnShardChanging(shard)) {
    const ParametersEntry entry = std::move(kept.front());
    kept.pop_front();
    Merge(LinkOf(shard), entry);
  }
}

void ReadPath::DropKept(ServerId server) {
  for (const ShardId shard : parts_.partition.ShardsOf(server)) shards_[shard.value].kept.clear();
}

void ReadPath::ExpectExact() {
  for (uint32_t s = 0; s < shards_.size(); ++s) {
    shards_[s].exact = true;
    if (!MayUse(shards_[s])) parts_.listener.OnShardExpected(ShardId{s});
    MergeKept(ShardId{s});
  }
}

void ReadPath::OnParameters(ServerLink& link, const ParametersEntry& entry) {
  // 1. Drop the received entry unless it answers a read. The parameters of a shard may consist of
  // several entries; all except the last have `more` set.
  SendQueue& queue = link.queue();
  if (!queue.AwaitsParameters(entry.shard, entry.step)) return;
  Shard& shard = shards_[entry.shard.value];
  // Deltas that were sent before the request for all values have no base.
  if (shard.reads_in_full && entry.kind != Parameters::FULL) return;
  shard.reads_in_full = false;
  if (!entry.more) {
    const uint32_t ahead = StepsAhead(entry);
    queue.FinishRead(entry.shard, entry.step, entry.step + (entry.holds_pushes ? 0 : ahead));
    steps_ahead_ = ahead;
    if (waiting_.Clear(entry.shard)) parts_.report.set_waiting(waiting_.Text());
  }
  // A repeated read has told a server that has forgotten steps where this worker is. The worker may
  // be computing with the parameters that it has, so they must not change.
  if (queue.HasParameters(entry.shard, entry.step)) return;

  // 2. Keep the entry while the worker uses the shard's parameters.
  if (!shard.kept.empty() || !parts_.listener.OnShardChanging(entry.shard)) {
    if (entry.kind == Parameters::FULL) shard.kept.clear();
    shard.kept.push_back(entry);
    return;
  }
  Merge(link, entry);
}

void ReadPath::Merge(ServerLink& link, const ParametersEntry& entry) {
  // 3. Decode the payload into the replica.
  const absl::Time begin = parts_.loop->Now();
  const absl::StatusOr<Replica::Merged> merged = [&] {
    const TraceSpan span(parts_.options.tracer, "exchange", "decode",
                         {.step = entry.step, .shard = entry.shard});
    return parts_.replica.Merge(entry);
  }();
  parts_.report.Count(WorkerCounters::kDecodeMicrosFieldNumber,
                      static_cast<uint64_t>(absl::ToInt64Microseconds(parts_.loop->Now() - begin)));
  if (!merged.ok()) return Fail(link, merged.status());
  if (*merged == Replica::Merged::kDiffers) {
    if (const auto more = difference_lines_.Next(parts_.loop->Now())) {
      LOG(ERROR) << "shard " << entry.shard << ": version " << entry.version
                 << " differs from the server's; reading the shard in full" << *more;
    }
    parts_.report.Count(WorkerCounters::kDifferingReplicasFieldNumber);
  }
  if (*merged != Replica::Merged::kDone) return ReadInFull(link, entry);
  parts_.report.Count(WorkerCounters::kPullBytesEncodedFieldNumber, entry.payload.size());
  if (entry.more) return;
  link.queue().HoldParameters(entry.shard, entry.step);
  Shard& shard = shards_[entry.shard.value];
  shard.held = entry.step;
  shard.last = entry.step + StepsAhead(entry);

  // 4. Return the unselected values of the shard's last push to the residual, if the job uses
  // gTop-k.
  const absl::Status returned = returns_.OnParameters(entry);
  if (!returned.ok()) return Fail(link, returned);

  // 5. Count the bytes and notify the training thread. The parameters may be those of an earlier
  // step.
  parts_.report.Count(WorkerCounters::kPullBytesRawFieldNumber,
                      parts_.partition.value_count(entry.shard) * sizeof(float));
  if (MayUse(shard)) parts_.listener.OnShardArrived(entry.shard);
}

void ReadPath::ReadInFull(ServerLink& link, const ParametersEntry& entry) {
  Shard& shard = shards_[entry.shard.value];
  shard.reads_in_full = true;
  shard.kept.clear();
  parts_.replica.Forget(entry.shard);
  link.queue().ReadAgain(entry.shard);
  link.SendQueued();
}

void ReadPath::Fail(const ServerLink& link, const absl::Status& status) {
  // A malformed entry is an error of the server, so the message names the server. Other errors
  // occurred on this machine.
  if (absl::IsInvalidArgument(status) || absl::IsDataLoss(status)) {
    return fail_(
        WithServerName(parts_.transport, link.server(), absl::InternalError(status.message())));
  }
  fail_(status);
}

void ReadPath::OnWaiting(ServerLink& link, std::span<const WaitingEntry> entries) {
  bool changed = false;
  for (const WaitingEntry& entry : entries) {
    if (!link.queue().HasPendingRead(entry.shard)) continue;
    waiting_.Add(entry);
    changed = true;
  }
  if (changed) parts_.report.set_waiting(waiting_.Text());
}

}  // namespace thinwire::client
