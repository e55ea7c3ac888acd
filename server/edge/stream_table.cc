#include "server/edge/stream_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {

void StreamTable::Know(WorkerId worker, Incarnation incarnation) {
  absl::MutexLock lock(&mu_);
  Row& row = rows_[worker.value];
  row.known = std::max(row.known, incarnation);
}

absl::Status StreamTable::Enter(WorkerId worker, Incarnation incarnation,
                                const std::shared_ptr<ServerStream>& stream) {
  std::shared_ptr<ServerStream> replaced;
  {
    absl::MutexLock lock(&mu_);
    if (worker.value >= rows_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("worker ", worker.value, ": want a worker below ", rows_.size()));
    }
    Row& row = rows_[worker.value];
    if (incarnation.value == 0 || incarnation > row.known) {
      return absl::FailedPreconditionError(absl::StrCat("worker ", worker.value, ": incarnation ",
                                                        incarnation.value, " has not joined here"));
    }
    if (incarnation < row.known) return absl::OkStatus();
    replaced = std::exchange(row.stream, stream);
    // The predecessor's stream stays: it is told that it is fenced.
    if (row.speaking != incarnation || replaced == stream) replaced = nullptr;
    row.speaking = incarnation;
  }
  if (replaced != nullptr) {
    replaced->End(
        absl::AbortedError(absl::StrCat("worker ", worker.value, " opened another stream")));
  }
  return absl::OkStatus();
}

void StreamTable::Remove(const ServerStream* stream) {
  std::shared_ptr<ServerStream> last;  // let go after the lock
  absl::MutexLock lock(&mu_);
  for (Row& row : rows_) {
    if (row.stream.get() == stream) last = std::exchange(row.stream, nullptr);
  }
}

std::shared_ptr<ServerStream> StreamTable::Find(WorkerId worker, Incarnation incarnation) const {
  absl::MutexLock lock(&mu_);
  if (worker.value >= rows_.size()) return nullptr;
  const Row& row = rows_[worker.value];
  return row.speaking == incarnation && row.known == incarnation ? row.stream : nullptr;
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
