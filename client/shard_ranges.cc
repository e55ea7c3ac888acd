#include "client/shard_ranges.h"

#include "absl/strings/str_cat.h"

namespace thinwire::client {

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

}  // namespace thinwire::client
