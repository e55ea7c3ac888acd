// PublishOptions: how the servers publish parameters as deltas (`pull: delta` and its variants;
// docs/deltas.md). A delta is the change of a shard's values between two published versions. A
// value type.
#ifndef THINWIRE_COMMON_SPEC_PUBLISH_OPTIONS_H_
#define THINWIRE_COMMON_SPEC_PUBLISH_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>

#include "common/codec/table.h"
#include "common/problems.h"

namespace thinwire {

struct PublishOptions {
  // The codec that encodes the deltas; nullopt: deltas are exact.
  std::optional<CodecSpec> codec;
  // Bytes of past deltas that a shard keeps for workers that fell behind.
  size_t log_bytes = size_t{4} << 20;
  // The number of updates that one delta covers; 0: as many as there are live workers. Modes ssp
  // and async only.
  uint32_t every = 0;

  // Returns every problem of these options, by the names of their fields in a job file.
  Problems Validate() const;

  bool operator==(const PublishOptions&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const PublishOptions& options);
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_PUBLISH_OPTIONS_H_
