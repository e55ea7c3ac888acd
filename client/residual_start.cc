#include "client/residual_start.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace thinwire::client {
namespace {

// The first step that no earlier process of this number has finished anywhere.
Step PredecessorNext(std::span<const JoinReply> replies) {
  Step next;
  for (const JoinReply& reply : replies) {
    for (const ShardState& shard : reply.shards()) {
      next = std::max(next, Step{shard.predecessor_next()});
    }
  }
  return next;
}

}  // namespace

ResidualStart StartResiduals(const std::string& path, std::optional<Step> saved,
                             std::span<const JoinReply> replies, Step first) {
  const Step next = PredecessorNext(replies);
  const std::string lost =
      next == Step{} ? "" : "; what an earlier process of this worker still owed is lost";
  if (!saved.has_value()) {
    if (path.empty() && lost.empty()) return {};
    return {.text = absl::StrCat(path.empty() ? "no residual file" : path + ": no file yet", lost)};
  }
  const std::string file = absl::StrCat(path, ": saved before step ", saved->value);
  if (next > *saved) {
    return {.text = absl::StrCat(file, ", and pushed up to step ", next.value, " since", lost)};
  }
  if (first < *saved) {
    return {.text = absl::StrCat(file, ", and the job is at step ", first.value,
                                 ": of another run, not restored")};
  }
  return {.restore = true, .text = absl::StrCat(file, ", restored")};
}

}  // namespace thinwire::client
