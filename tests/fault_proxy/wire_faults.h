// WireFaults: the faults of a simulated network link, and the commands that change them.
//
//   latency 80ms         delays all bytes, in each direction
//   bandwidth 10Mbit     limits each direction, in bits per second; `unlimited` removes the limit
//   slice 1400           passes at most this many bytes per write
//   reset_rate 0.01      resets connections at random: resets per second and connection
//   cut up|down|both     stops all bytes to the target, from the target, or both
//   half-open            discards all bytes and accepts connections without a reply
//   restore              ends cut and half-open
//   reset                resets all connections once
#ifndef THINWIRE_TESTS_FAULT_PROXY_WIRE_FAULTS_H_
#define THINWIRE_TESTS_FAULT_PROXY_WIRE_FAULTS_H_

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace thinwire {

struct WireFaults {
  absl::Duration latency;
  double bits_per_second = 0;  // 0: unlimited
  size_t slice_bytes = 16384;
  double reset_rate = 0;
  bool cut_up = false;
  bool cut_down = false;
  bool half_open = false;

  // Applies a command, except `reset`, which changes no field. Errors: InvalidArgument with the
  // command, the expected and the actual value.
  absl::Status Apply(std::string_view command);

  bool operator==(const WireFaults&) const = default;
};

// Link computes the times at which the bytes of one direction leave a link of limited bandwidth.
// Callers pass the current time. Not thread-safe.
class Link {
 public:
  // Returns the time at which the last of BYTES has left the link. The bytes queue behind those of
  // all earlier calls. REQUIRES: bits_per_second is not negative; 0 means unlimited.
  absl::Time Depart(absl::Time now, size_t bytes, double bits_per_second);

 private:
  absl::Time free_at_ = absl::InfinitePast();
};

}  // namespace thinwire

#endif  // THINWIRE_TESTS_FAULT_PROXY_WIRE_FAULTS_H_
