// The entry point of the codec library. A codec encodes the floats of one shard as bytes.
//
//   family/encoder.h   Codec: encodes with the settings of a CodecSpec
//   payload.h          CheckedPayload: decodes a payload, whose first byte identifies its codec
//   spec.h             CodecSpec: the settings, and their Validate()
//   table.h            the list of codecs: their names, ids and uses
//
// docs/codecs.md describes the payloads.
#ifndef THINWIRE_COMMON_CODEC_CODEC_H_
#define THINWIRE_COMMON_CODEC_CODEC_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/codec/family/encoder.h"
#include "common/codec/payload.h"
#include "common/codec/spec.h"
#include "common/codec/table.h"

namespace thinwire {

// Returns the codec that SPEC describes. Errors: InvalidArgument if SPEC is not valid.
absl::StatusOr<std::unique_ptr<const Codec>> MakeCodec(const CodecSpec& spec);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEC_H_
