// Gpu: a GPU as the Device of a client. Opened once for each client; what it makes shares nothing.
#ifndef THINWIRE_CLIENT_GPU_GPU_H_
#define THINWIRE_CLIENT_GPU_GPU_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/device.h"
#include "client/options/client_options.h"
#include "common/partition.h"

namespace thinwire::client::gpu {

// Immutable. Thread-safe.
class Gpu final : public Device {
 public:
  // The GPU of this NUMBER, which becomes the calling thread's. Errors: FailedPrecondition that
  // says what is missing: a driver, or a GPU of that number; the device's.
  static absl::StatusOr<std::unique_ptr<const Gpu>> Open(int number);

  std::string name() const override { return name_; }
  absl::Status Use() const override;
  absl::StatusOr<std::unique_ptr<ParameterMemory>> MakeParameters(
      const Partition& partition) const override;
  absl::StatusOr<std::unique_ptr<ShardEncoder>> MakeEncoder(
      const Partition& partition, const ClientOptions& options) const override;

 private:
  Gpu(int number, std::string name) : number_(number), name_(std::move(name)) {}

  const int number_;
  const std::string name_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_GPU_H_
