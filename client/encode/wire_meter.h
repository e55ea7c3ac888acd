// WireMeter: measures the goodput of pushes in bytes per second, as one worker sees it. The goodput
// depends on the worker's own network link, on its share of the servers' links, and on the servers'
// speed. WireMeter is a pure state machine: callers pass the current time.
//
//   busy time   the time in which at least one sent push has no verdict
//   sample      the bytes of a step / its busy time, if there are at least kLeastBytes
//   goodput     the mean of the last goodput and the newest sample
//
// If encoding takes more than half of the busy time, the network may be faster than the sample.
// Such a sample can raise the goodput but not lower it.
#ifndef THINWIRE_CLIENT_ENCODE_WIRE_METER_H_
#define THINWIRE_CLIENT_ENCODE_WIRE_METER_H_

#include <cstddef>
#include <optional>

#include "absl/time/time.h"

namespace thinwire::client {

// Not thread-safe.
class WireMeter {
 public:
  static constexpr size_t kLeastBytes = size_t{16} << 10;

  // Records that pushes of BYTES bytes were given to a stream.
  void Sent(size_t bytes, absl::Time now);
  // Records that a push of BYTES bytes got its verdict.
  void Judged(size_t bytes, absl::Time now);
  // Records that encoding a shard took TOOK.
  void Encoded(absl::Duration took) { encoding_ += took; }
  // Records that a stream was lost. The current step gives no sample.
  void Lost();
  // Ends the step. Returns the goodput, or nullopt before the first sample.
  std::optional<double> EndStep();

 private:
  void ResetStep();

  // Of the current step.
  size_t under_way_ = 0;  // bytes of sent pushes without a verdict
  size_t judged_ = 0;     // bytes of pushes with a verdict
  absl::Time busy_since_;
  absl::Duration busy_;
  absl::Duration encoding_;
  bool lost_ = false;  // a stream was lost

  std::optional<double> goodput_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_WIRE_METER_H_
