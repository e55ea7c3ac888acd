// The settings of codecs that a configuration has one of, whichever way the codec sends.
// Thread-safe.
#ifndef THINWIRE_PROTO_CODEC_SETTINGS_H_
#define THINWIRE_PROTO_CODEC_SETTINGS_H_

#include "absl/status/status.h"
#include "common/codec/table.h"
#include "proto/config.pb.h"

namespace thinwire {

// Sets what COMPRESSION says of twobit, qsgd, onebit, and the indices and least count of topk.
// Errors: InvalidArgument.
absl::Status SetCodecSettings(const Compression& compression, CodecSpec& spec);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_CODEC_SETTINGS_H_
