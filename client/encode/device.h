// Device: a place other than the host's memory that holds a client's tensors, such as a GPU. A
// Device makes the objects that work on these tensors. client/gpu implements this interface. A
// client without a Device uses the host's memory.
#ifndef THINWIRE_CLIENT_ENCODE_DEVICE_H_
#define THINWIRE_CLIENT_ENCODE_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/shard_encoder.h"
#include "client/options/client_options.h"
#include "client/replica/parameter_memory.h"
#include "common/model/partition.h"

namespace thinwire {

// Thread-safe. The objects that a Device makes are not thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  // Returns the device's name for messages, for example "cuda:0 (NVIDIA H100)".
  virtual std::string name() const = 0;

  // Makes this device the current device of the calling thread. Every thread must call Use before
  // it uses an object made by this device.
  virtual absl::Status Use() const = 0;

  // Makes the memory of a replica, or the encoder of the gradients. PARTITION and the device must
  // outlive the returned object.
  virtual absl::StatusOr<std::unique_ptr<client::ParameterMemory>> MakeParameters(
      const Partition& partition) const = 0;
  virtual absl::StatusOr<std::unique_ptr<client::ShardEncoder>> MakeEncoder(
      const Partition& partition, const ClientOptions& options) const = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_ENCODE_DEVICE_H_
