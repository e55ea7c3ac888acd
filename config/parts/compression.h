// The part `compression` of the job file, and the selection of gradients, which shares its settings.
#ifndef THINWIRE_CONFIG_PARTS_COMPRESSION_H_
#define THINWIRE_CONFIG_PARTS_COMPRESSION_H_

#include <optional>
#include <vector>

#include "common/codec/table.h"
#include "common/spec/publish_options.h"
#include "common/spec/push_spec.h"
#include "common/spec/sparse_update_spec.h"
#include "config/parts/condition.h"
#include "proto/job.pb.h"

namespace thinwire {

// Returns the codec with the number VALUE of Compression::Codec. REQUIRES: VALUE is a codec, so
// neither a delta nor auto, fastest or adaptive.
CodecId CodecOf(int value);

// Returns the push codec ID with the settings of C.
CodecSpec PushCodecOf(CodecId id, const Compression& c);
PushSpec PushSpecOf(const Compression& c);
// Returns nullopt if workers read whole parameters, with the codec `pull`.
std::optional<PublishOptions> PublishOptionsOf(const Compression& c);
SparseUpdateSpec SparseUpdateSpecOf(const Optimization& o, const Compression& c);

std::vector<Condition> CompressionConditions();

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_PARTS_COMPRESSION_H_
