// WireMeter: how many bytes of pushes a second the wire takes, as a worker sees it: its own link,
// what others leave it of the servers' links, and the servers' folding. Time is handed in, so this
// is a pure state machine.
//
//   busy       while anything that was sent has no verdict
//   a sample   the bytes of a step / the time it was busy, if they are at least kLeastBytes
//   goodput    a mean of samples, the newest counting half
//
// A step in which encoding took more than half of the busy time says only that the wire carries at
// least so much: such a sample raises the goodput and never lowers it.
#ifndef THINWIRE_CLIENT_WIRE_METER_H_
#define THINWIRE_CLIENT_WIRE_METER_H_

#include <cstddef>
#include <optional>

#include "absl/time/time.h"

namespace thinwire::client {

// Not thread-safe.
class WireMeter {
 public:
  static constexpr size_t kLeastBytes = size_t{16} << 10;

  // Pushes of so many bytes were given to a stream.
  void Sent(size_t bytes, absl::Time now);
  // A push of so many bytes got its verdict.
  void Judged(size_t bytes, absl::Time now);
  // A shard was encoded in so much time.
  void Encoded(absl::Duration took) { encoding_ += took; }
  // A stream was lost: this step is no sample.
  void Lost();
  // The step is over: the goodput, if any is known by now.
  std::optional<double> EndStep();

 private:
  void Forget();

  // Of this step.
  size_t under_way_ = 0;
  size_t judged_ = 0;
  absl::Time busy_since_;
  absl::Duration busy_;
  absl::Duration encoding_;
  bool lost_ = false;

  std::optional<double> goodput_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_WIRE_METER_H_
