// WireMeter: measures the goodput of one worker's pushes, in bytes per second. The goodput depends
// on the worker's own network link, on its share of the servers' links, and on the servers' speed.
// WireMeter is a pure state machine: callers pass the current time.
//
//   busy time   the time in which at least one sent push has no verdict
//   sample      the bytes of a step / its busy time, if there are at least kLeastBytes
//   goodput     the mean of the previous goodput and the newest sample
//
// If encoding takes more than half of the busy time, the network may be faster than the sample.
// Such a sample can raise the goodput but not lower it. A step that begins before all pushes of the
// step before have verdicts gives no sample.
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

  // Records that pushes with BYTES bytes in total were passed to a stream.
  void Sent(size_t bytes, absl::Time now);
  // Records that the verdict of a push of BYTES bytes has arrived.
  void Judged(size_t bytes, absl::Time now);
  // Records that the encoding of a shard took the time TOOK.
  void Encoded(absl::Duration took) { encoding_ += took; }
  // Records that a stream was lost. The current step then gives no sample.
  void Lost();
  // Ends the step. Returns the goodput in bytes per second, or nullopt before the first sample.
  std::optional<double> EndStep();
  // Returns the last result of EndStep().
  std::optional<double> goodput() const { return goodput_; }

 private:
  // The measurements of the current step; sizes in bytes.
  size_t under_way_ = 0;
  size_t judged_ = 0;
  absl::Time busy_since_;
  absl::Duration busy_;
  absl::Duration encoding_;
  bool lost_ = false;

  std::optional<double> goodput_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_WIRE_METER_H_
