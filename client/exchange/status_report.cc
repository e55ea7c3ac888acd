#include "client/exchange/status_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace thinwire::client {
namespace {

std::string Cause(const WaitingEntry& entry) {
  std::string cause = absl::StrCat("step ", entry.step.value, ": waits for ");
  if (entry.unseeded) return cause + "a worker to send the first values";
  if (entry.wanted > 0) {
    absl::StrAppend(&cause, "workers, ", entry.live, " of ", entry.wanted, " joined");
    return cause;
  }
  if (entry.workers.empty()) return cause + "its server";
  cause += entry.workers.size() == 1 ? "worker " : "workers ";
  const size_t named = std::min(entry.workers.size(), WaitingReads::kNamedWorkers);
  for (size_t i = 0; i < named; ++i) {
    absl::StrAppend(&cause, i > 0 ? ", " : "", entry.workers[i].value);
  }
  if (const size_t more = entry.workers.size() - named; more > 0) {
    absl::StrAppend(&cause, " and ", more, " more");
  }
  return cause;
}

}  // namespace

std::string ShardRanges(std::span<const ShardId> shards) {
  if (shards.empty()) return "no shard";
  std::string text = shards.size() == 1 ? "shard " : "shards ";
  for (size_t first = 0; first < shards.size();) {
    size_t last = first;
    while (last + 1 < shards.size() && shards[last + 1] == shards[last] + 1) ++last;
    if (first > 0) text += ", ";
    absl::StrAppend(&text, shards[first].value);
    if (last > first) absl::StrAppend(&text, "-", shards[last].value);
    first = last + 1;
  }
  return text;
}

void WaitingReads::Add(const WaitingEntry& entry) { causes_[entry.shard] = Cause(entry); }

std::string WaitingReads::Text() const {
  std::map<std::string, std::vector<ShardId>> shards_of;
  for (const auto& [shard, cause] : causes_) shards_of[cause].push_back(shard);
  std::string text;
  for (const auto& [cause, shards] : shards_of) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", cause, " (", ShardRanges(shards), ")");
  }
  return text;
}

void StatusReport::EndWait(absl::Duration time, int field_number) {
  absl::MutexLock lock(&mu_);
  if (wait_names_server_) {
    field_number = WorkerCounters::kWaitServersMicrosFieldNumber;
  } else if (wait_names_workers_ &&
             field_number == WorkerCounters::kWaitParametersMicrosFieldNumber) {
    field_number = WorkerCounters::kWaitWorkersMicrosFieldNumber;
  }
  counters_.Add(field_number, static_cast<uint64_t>(absl::ToInt64Microseconds(time)));
}

}  // namespace thinwire::client
