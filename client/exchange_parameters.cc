// The part of Exchange that takes the parameters that came, and what came with them.
#include <glog/logging.h>

#include <utility>

#include "client/exchange.h"
#include "client/membership.h"

namespace thinwire::client {

void Exchange::OnParameters(ServerId server, const ParametersEntry& entry) {
  Outbox& outbox = peers_[server.value].outbox;
  const bool awaited = entry.more ? outbox.Awaits(entry.shard, entry.step)
                                  : outbox.TakeAnswer(entry.shard, entry.step);
  if (!awaited) return;  // of an older step, or come twice
  const auto fail = [&](const absl::Status& status) {
    Fail(WithServer(parts_.transport, server, absl::InternalError(status.message())));
  };
  const absl::StatusOr<Replica::Merged> merged = parts_.replica.Merge(entry);
  if (absl::IsInvalidArgument(merged.status()) || absl::IsDataLoss(merged.status())) {
    return fail(merged.status());
  }
  if (!merged.ok()) return Fail(merged.status());  // this machine's own
  if (*merged != Replica::Merged::kDone) {
    if (*merged == Replica::Merged::kDiffers) {
      LOG(ERROR) << "shard " << entry.shard << ": version " << entry.version
                 << " is not here what it is at the server: reading all of it";
      parts_.report.Count(WorkerCounters::kDifferingReplicasFieldNumber);
    }
    parts_.replica.Forget(entry.shard);
    outbox.Read(entry.shard, entry.step);
    peers_[server.value].link->Pump();
    return;
  }
  parts_.report.Count(WorkerCounters::kPullBytesEncodedFieldNumber, entry.payload.size());
  if (entry.more) return;
  const auto put_back = put_backs_.Answered(entry, parts_.partition.value_count(entry.shard));
  if (!put_back.ok()) return fail(put_back.status());
  PutBack(*put_back);
  parts_.report.Count(WorkerCounters::kPullBytesRawFieldNumber,
                      parts_.partition.value_count(entry.shard) * sizeof(float));
  if (waits_.Clear(entry.shard)) parts_.report.set_waiting(waits_.Text());
  parts_.rendezvous.Arrive(entry.shard);
}

void Exchange::PutBack(const PutBacks::Outcome& outcome) {
  if (outcome.push.has_value()) {
    absl::Status put_back = parts_.encoder.PutBack(*outcome.push, outcome.taken);
    if (!put_back.ok()) return Fail(std::move(put_back));
  }
  if (outcome.lost) parts_.report.Count(WorkerCounters::kLostGtopkReturnsFieldNumber);
}

}  // namespace thinwire::client
