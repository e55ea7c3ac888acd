#include "proto/pull_choice.h"

namespace thinwire {

PullChoice ParsePull(std::string_view pull) {
  constexpr std::string_view kDelta = "delta";
  constexpr std::string_view kDeltaThrough = "delta_";
  if (pull == kDelta) return {.deltas = true};
  const bool through = pull.starts_with(kDeltaThrough);
  if (through) pull.remove_prefix(kDeltaThrough.size());
  return {.deltas = through, .codec = std::string(pull)};
}

}  // namespace thinwire
