#include "client/parts/masters.h"

#include <algorithm>

#include "client/transport/read_masters.h"

namespace thinwire::client {

absl::StatusOr<std::vector<std::vector<float>>> Masters::Read() {
  return ReadFromServers(MastersRequest());
}

absl::StatusOr<std::vector<std::vector<float>>> Masters::ReadAverages() {
  MastersRequest request;
  request.set_averages(true);
  return ReadFromServers(request);
}

absl::StatusOr<std::vector<std::vector<float>>> Masters::ReadFromServers(
    const MastersRequest& request) {
  const absl::Duration patience = std::max(thread_.options.silence, thread_.options.server_return);
  return ReadMasters(thread_.transport, thread_.threads, thread_.stop, patience, thread_.partition,
                     request);
}

}  // namespace thinwire::client
