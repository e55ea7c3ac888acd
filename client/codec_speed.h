// What a codec costs on this machine: a start-up benchmark of a millisecond or two. An array of
// random numbers, as large as a shard, is encoded with error feedback and decoded into a sum, a few
// times; the fastest time of each counts, since whatever disturbs only adds.
#ifndef THINWIRE_CLIENT_CODEC_SPEED_H_
#define THINWIRE_CLIENT_CODEC_SPEED_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "client/codec_choice.h"
#include "common/clock.h"
#include "common/codec/codec_names.h"

namespace thinwire::client {

// VALUES: in the array, at least 1. Encoding into fp32 costs nothing: what goes as it is goes from
// where it lies. Errors: InvalidArgument for a spec that makes no codec.
absl::StatusOr<CodecCost> MeasureCodec(const CodecSpec& spec, size_t values, Clock& clock);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_CODEC_SPEED_H_
