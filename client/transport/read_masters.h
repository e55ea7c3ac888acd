// Reads the exact fp32 parameters (masters) of a whole model from all servers, or those of a part of
// it (Partition::Of).
//
// A server sends its masters in chunks, each a run of values of one tensor. Every value of the
// model must arrive exactly once.
#ifndef THINWIRE_CLIENT_TRANSPORT_READ_MASTERS_H_
#define THINWIRE_CLIENT_TRANSPORT_READ_MASTERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/transport/stop_signal.h"
#include "client/transport/transport.h"
#include "common/model/partition.h"
#include "common/time/clock.h"
#include "proto/control.pb.h"

namespace thinwire::client {

// MastersAssembly makes the tensors of a model from chunks that arrive in any order. Not
// thread-safe.
class MastersAssembly {
 public:
  // PARTITION must outlive this object.
  explicit MastersAssembly(const Partition& partition);

  // Copies the values of CHUNK to their places. Errors: DataLoss, with the tensor and the position,
  // if the model has no such tensor or value, the chunk has a part of a value, or a value has
  // arrived before.
  absl::Status Add(const MastersChunk& chunk);
  // Returns the values of each tensor, row-major. Call once. Errors: DataLoss, with the tensor and
  // the position, if a value has not arrived.
  absl::StatusOr<std::vector<std::vector<float>>> Finish();

 private:
  const Partition& partition_;
  absl::flat_hash_map<std::string, uint32_t> numbers_;  // the number of the tensor with each name
  std::vector<std::vector<float>> tensors_;
  // For each tensor, the runs of values that have arrived: first value -> the value after the last.
  std::vector<std::map<uint64_t, uint64_t>> arrived_;
};

// Reads the masters of all servers at the same time, or their averages if REQUEST asks for them.
// Returns the values of each tensor, row-major. Calls an unreachable server again until PATIENCE
// has passed. Errors: the error of the first server that could not be read, with its name; those of
// MastersAssembly; Cancelled if STOP is set.
absl::StatusOr<std::vector<std::vector<float>>> ReadMasters(Transport& transport, Clock& clock,
                                                            const std::shared_ptr<StopSignal>& stop,
                                                            absl::Duration patience,
                                                            const Partition& partition,
                                                            const MastersRequest& request);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_TRANSPORT_READ_MASTERS_H_
