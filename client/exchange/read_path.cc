#include "client/exchange/read_path.h"

#include <glog/logging.h>

#include <utility>

#include "absl/time/time.h"
#include "client/transport/join_leave.h"
#include "common/time/trace.h"
#include "proto/worker_event.pb.h"

namespace thinwire::client {

ReadPath::ReadPath(const ExchangeParts& parts,
                   const std::vector<std::unique_ptr<ServerLink>>& links, GtopkReturns& returns,
                   std::function<void(absl::Status)> fail)
    : parts_(parts), links_(links), returns_(returns), fail_(std::move(fail)) {}

void ReadPath::ReadAll(Step step) {
  step_ = step;
  for (uint32_t s = 0; s < parts_.partition.shard_count(); ++s) {
    const ShardId shard{s};
    parts_.listener.OnShardExpected(shard);
    links_[parts_.partition.server(shard).value]->queue().Read(shard, step);
  }
  for (const std::unique_ptr<ServerLink>& link : links_) link->SendQueued();
}

void ReadPath::ExpectAfterPush(ShardId shard, Step step) {
  step_ = step;
  parts_.listener.OnShardExpected(shard);
}

void ReadPath::OnParameters(ServerLink& link, const ParametersEntry& entry) {
  // 1. Drop the received entry unless it answers a read. The parameters of a shard may consist of
  // several entries; all except the last have `more` set.
  SendQueue& queue = link.queue();
  if (!queue.AwaitsParameters(entry.shard, entry.step)) return;
  // A repeated read has told a server that has forgotten steps where this worker is. The worker may
  // be computing with the parameters that it has, so they must not change.
  if (queue.HasParameters(entry.shard, entry.step)) {
    if (entry.more) return;
    queue.FinishRead(entry.shard, entry.step);
    if (waiting_.Clear(entry.shard)) parts_.report.set_waiting(waiting_.Text());
    return;
  }

  // 2. Decode the payload into the replica.
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
  queue.FinishRead(entry.shard, entry.step);

  // 3. Return the unselected values of the shard's last push to the residual, if the job uses
  // gTop-k.
  const absl::Status returned = returns_.OnParameters(entry);
  if (!returned.ok()) return Fail(link, returned);

  // 4. Count the bytes and notify the training thread.
  parts_.report.Count(WorkerCounters::kPullBytesRawFieldNumber,
                      parts_.partition.value_count(entry.shard) * sizeof(float));
  if (waiting_.Clear(entry.shard)) parts_.report.set_waiting(waiting_.Text());
  // The parameters of an earlier step, which the link has read before it sends the shard's push.
  if (queue.HasPendingRead(entry.shard)) return;
  parts_.listener.OnShardArrived(entry.shard);
}

void ReadPath::ReadInFull(ServerLink& link, const ParametersEntry& entry) {
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
