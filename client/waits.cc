#include "client/waits.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "client/shard_ranges.h"

namespace thinwire::client {
namespace {

std::string Cause(const WaitingEntry& entry) {
  std::string cause = absl::StrCat("step ", entry.step.value, ": waits for ");
  if (entry.unseeded) return cause + "first values";
  if (entry.wanted > 0) {
    absl::StrAppend(&cause, "workers, ", entry.live, " of ", entry.wanted, " are there");
    return cause;
  }
  if (entry.workers.empty()) return cause + "its server";
  cause += entry.workers.size() == 1 ? "worker " : "workers ";
  for (size_t i = 0; i < entry.workers.size(); ++i) {
    absl::StrAppend(&cause, i > 0 ? ", " : "", entry.workers[i].value);
  }
  return cause;
}

}  // namespace

std::string Waits::Text() const {
  std::map<std::string, std::vector<ShardId>> shards_of;
  for (const auto& [shard, entry] : waits_) shards_of[Cause(entry)].push_back(shard);
  std::string text;
  for (const auto& [cause, shards] : shards_of) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", cause, " (", ShardRanges(shards), ")");
  }
  return text;
}

}  // namespace thinwire::client
