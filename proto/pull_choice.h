// What `pull` of config.proto says.
//
//   bf16             the masters, in a codec
//   delta            what the servers publish, which is exactly what changed
//   delta_fp8_e5m2   what the servers publish, through a codec
//
// A value type; the function is pure: thread-safe.
#ifndef THINWIRE_PROTO_PULL_CHOICE_H_
#define THINWIRE_PROTO_PULL_CHOICE_H_

#include <string>
#include <string_view>

namespace thinwire {

struct PullChoice {
  bool deltas = false;
  std::string codec;  // its name, known or not; empty: exactly

  bool operator==(const PullChoice&) const = default;
};

PullChoice ParsePull(std::string_view pull);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_PULL_CHOICE_H_
