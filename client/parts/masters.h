// Masters: the part of a client that reads the exact fp32 parameters from the servers.
#ifndef THINWIRE_CLIENT_PARTS_MASTERS_H_
#define THINWIRE_CLIENT_PARTS_MASTERS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/parts/core_thread.h"
#include "proto/control.pb.h"

namespace thinwire::client {

class Masters {
 public:
  explicit Masters(CoreThread& thread) : thread_(thread) {}

  // Returns one row-major array per tensor. After the Leave of the last live worker the parameters
  // are final. Before Leave, in mode sync they are those of one step if WaitAll has returned and
  // BeginStep has not been called since: no round closes without this worker's pushes. In the other
  // modes the shards may be at different versions. Errors: those of the first server that does not
  // answer for the longer of `silence` and `server_return`; DataLoss if a value is missing or
  // arrives twice; Cancelled after Stop. REQUIRES: not called between BeginStep and NextStep.
  absl::StatusOr<std::vector<std::vector<float>>> Read();
  // Like Read, but reads the moving averages of the parameters (`parameter_average`). In a job
  // without averages, these are the parameters.
  absl::StatusOr<std::vector<std::vector<float>>> ReadAverages();

 private:
  absl::StatusOr<std::vector<std::vector<float>>> ReadFromServers(const MastersRequest& request);

  CoreThread& thread_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PARTS_MASTERS_H_
