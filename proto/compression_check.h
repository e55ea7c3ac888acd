// The check of `compression`: codecs, densities and what else is said of pushes and pulls, field by
// field and against one another. What it must be beside the mode and the optimizer:
// diverging_pairs.h.
#ifndef THINWIRE_PROTO_COMPRESSION_CHECK_H_
#define THINWIRE_PROTO_COMPRESSION_CHECK_H_

#include <string_view>

#include "proto/config.pb.h"
#include "proto/findings.h"

namespace thinwire {

// What `push` may name in place of a codec.
inline constexpr std::string_view kPushRuleNames[] = {"auto", "fastest"};

void CheckCompression(const Compression& compression, Findings& findings);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_COMPRESSION_CHECK_H_
