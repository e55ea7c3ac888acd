// What codecs cost on this machine: a start-up benchmark of a millisecond or two for each. Random
// numbers, as many as a shard has and where gradients lie, are encoded as the client encodes them,
// until the payload is in the host's memory, and decoded into a sum, as a server does. The fastest
// of a few times counts, since whatever disturbs only adds.
#ifndef THINWIRE_CLIENT_CODEC_SPEED_H_
#define THINWIRE_CLIENT_CODEC_SPEED_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "client/codec_choice.h"
#include "client/device.h"
#include "client/options.h"
#include "common/clock.h"
#include "common/codec/table.h"

namespace thinwire::client {

// Of each of SPECS, of shards of so many VALUES. OPTIONS say what is done beside encoding. DEVICE:
// null for the host's memory. Errors: InvalidArgument for a spec that makes no codec; the device's.
// REQUIRES: values is 1 to kLargestShardSize.
absl::StatusOr<std::vector<CodecCost>> MeasureCodecs(std::span<const CodecSpec> specs,
                                                     uint64_t values, const ClientOptions& options,
                                                     const Device* device, Clock& clock);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_CODEC_SPEED_H_
