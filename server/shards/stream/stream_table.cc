#include "server/shards/stream/stream_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {

void StreamTable::Admit(WorkerId worker, Incarnation incarnation) {
  absl::MutexLock lock(&mu_);
  Row& row = rows_[worker.value];
  row.newest = std::max(row.newest, incarnation);
}

absl::Status StreamTable::Register(WorkerId worker, Incarnation incarnation,
                                   const std::shared_ptr<ServerStream>& stream) {
  std::shared_ptr<ServerStream> replaced;
  {
    absl::MutexLock lock(&mu_);
    if (worker.value >= rows_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("worker: not a worker of this job (expected below ", rows_.size(), ", got ",
                       worker.value, ")"));
    }
    Row& row = rows_[worker.value];
    if (incarnation.value == 0 || incarnation > row.newest) {
      return absl::FailedPreconditionError(absl::StrCat("worker ", worker.value, ": incarnation ",
                                                        incarnation.value, " has not joined here"));
    }
    if (incarnation < row.newest) return absl::OkStatus();
    replaced = std::exchange(row.stream, stream);
    // If the replaced stream belongs to an older incarnation, it stays open, so that the older
    // incarnation receives the verdict kFenced.
    if (row.registered != incarnation || replaced == stream) replaced = nullptr;
    row.registered = incarnation;
  }
  if (replaced != nullptr) {
    replaced->End(
        absl::AbortedError(absl::StrCat("worker ", worker.value, " opened another stream")));
  }
  return absl::OkStatus();
}

void StreamTable::Remove(const ServerStream* stream) {
  std::shared_ptr<ServerStream> last;  // keeps the stream alive until the lock is released
  {
    absl::MutexLock lock(&mu_);
    for (Row& row : rows_) {
      if (row.stream.get() == stream) last = std::exchange(row.stream, nullptr);
    }
  }
  if (last != nullptr && ended_ != nullptr) ended_();
}

std::shared_ptr<ServerStream> StreamTable::Find(WorkerId worker, Incarnation incarnation) const {
  absl::MutexLock lock(&mu_);
  if (worker.value >= rows_.size()) return nullptr;
  const Row& row = rows_[worker.value];
  return row.registered == incarnation && row.newest == incarnation ? row.stream : nullptr;
}

std::vector<std::shared_ptr<ServerStream>> StreamTable::All() const {
  absl::MutexLock lock(&mu_);
  std::vector<std::shared_ptr<ServerStream>> streams;
  for (const Row& row : rows_) {
    if (row.stream != nullptr) streams.push_back(row.stream);
  }
  return streams;
}

}  // namespace thinwire
