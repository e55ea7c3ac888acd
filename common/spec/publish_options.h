// PublishOptions configures how servers publish parameters as deltas (`pull: delta` and its
// variants). docs/deltas.md describes deltas. Immutable.
#ifndef THINWIRE_COMMON_SPEC_PUBLISH_OPTIONS_H_
#define THINWIRE_COMMON_SPEC_PUBLISH_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>

#include "common/codec/table.h"
#include "common/text/problems.h"

namespace thinwire {

struct PublishOptions {
  // The codec of a delta; nullopt: exact deltas.
  std::optional<CodecSpec> codec;
  // Bytes of past deltas that a shard keeps for workers that are several versions behind.
  size_t log_bytes = size_t{4} << 20;
  // Modes ssp and async: the number of updates per delta; 0: the number of live workers.
  uint32_t every = 0;

  Problems Validate() const;

  bool operator==(const PublishOptions&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const PublishOptions& options);
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_PUBLISH_OPTIONS_H_
