// Device: where a client's tensors lie if not in the host's memory. It makes what works on them
// there. One class in gpu/ is a GPU; a client without a device works in the host's memory.
#ifndef THINWIRE_CLIENT_DEVICE_H_
#define THINWIRE_CLIENT_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/options.h"
#include "client/parameter_memory.h"
#include "client/shard_encoder.h"
#include "common/partition.h"

namespace thinwire {

// Thread-safe, but what it makes is not.
class Device {
 public:
  virtual ~Device() = default;

  // For a person: "cuda:0 (NVIDIA H100)".
  virtual std::string name() const = 0;

  // Makes the device the calling thread's: to be called before anything else, in each thread that
  // uses what the device makes.
  virtual absl::Status Use() const = 0;

  // PARTITION outlives what is made, and so does the device.
  virtual absl::StatusOr<std::unique_ptr<client::ParameterMemory>> MakeParameters(
      const Partition& partition) const = 0;
  virtual absl::StatusOr<std::unique_ptr<client::ShardEncoder>> MakeEncoder(
      const Partition& partition, const ClientOptions& options) const = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_DEVICE_H_
