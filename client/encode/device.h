// Device: a place other than the host's memory that holds a client's tensors, such as a GPU. It
// makes the objects that work on the tensors there. client/gpu implements it. A client without a
// Device uses the host's memory.
#ifndef THINWIRE_CLIENT_ENCODE_DEVICE_H_
#define THINWIRE_CLIENT_ENCODE_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/shard_encoder.h"
#include "client/options/client_options.h"
#include "client/replica/parameter_memory.h"
#include "common/partition.h"

namespace thinwire {

// Thread-safe. The objects that it makes are not.
class Device {
 public:
  virtual ~Device() = default;

  // Returns a name for messages: "cuda:0 (NVIDIA H100)".
  virtual std::string name() const = 0;

  // Makes this the calling thread's device. Every thread that uses an object made by the device
  // must call this first.
  virtual absl::Status Use() const = 0;

  // PARTITION and the device must outlive the returned object.
  virtual absl::StatusOr<std::unique_ptr<client::ParameterMemory>> MakeParameters(
      const Partition& partition) const = 0;
  virtual absl::StatusOr<std::unique_ptr<client::ShardEncoder>> MakeEncoder(
      const Partition& partition, const ClientOptions& options) const = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_ENCODE_DEVICE_H_
