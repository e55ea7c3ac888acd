// Measures the bytes and the computing time per value of codecs on this machine, in a start-up
// benchmark of a millisecond or two per codec. The benchmark places a shard of random values in the
// memory that holds gradients (host or device) and encodes the shard as the client does, until the
// payload is in the host's memory. Then it decodes the payload into a sum, as a server does. The
// result is the time of the fastest of a few runs, because disturbances only add time.
#ifndef THINWIRE_CLIENT_ENCODE_CODEC_SPEED_H_
#define THINWIRE_CLIENT_ENCODE_CODEC_SPEED_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "client/encode/codec_choice.h"
#include "client/encode/device.h"
#include "client/options/client_options.h"
#include "common/codec/table.h"
#include "common/time/clock.h"

namespace thinwire::client {

// Returns, for each codec in SPECS, the bytes per value and the times to encode and to decode one
// value. Encodes shards of VALUES values. OPTIONS contains the settings of error feedback and
// momentum correction. DEVICE holds the gradients; null means the host's memory. Errors:
// InvalidArgument for an invalid spec; errors of the device. REQUIRES: VALUES
// is between 1 and kLargestShardSize.
absl::StatusOr<std::vector<CodecCost>> MeasureCodecs(std::span<const CodecSpec> specs,
                                                     uint64_t values, const ClientOptions& options,
                                                     const Device* device, Clock& clock);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_CODEC_SPEED_H_
