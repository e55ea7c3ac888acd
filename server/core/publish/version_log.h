// VersionLog keeps the newest published deltas of a shard, so that a reader of an older version
// receives the changes since then instead of all values.
//
//   Append(4 -> 5)  Append(5 -> 8)  Append(8 -> 9)
//   Since(5)   the deltas 5 -> 8 and 8 -> 9
//   Since(9)   an empty chain: the reader is up to date
//   Since(6)   nullopt: version 6 was never published
//   Since(3)   nullopt: the log begins after version 3
//
// The log limits its bytes and its number of deltas, and drops the oldest deltas first. A copy of a
// log shares the deltas, which are immutable. Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_PUBLISH_VERSION_LOG_H_
#define THINWIRE_SERVER_CORE_PUBLISH_VERSION_LOG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/memory/byte_chain.h"

namespace thinwire {

// The change from published version `base` to published version `version`. The numeric values of
// Kind are part of the wire format (Parameters.Kind).
struct PublishedDelta {
  enum class Kind : uint8_t {
    kFull = 0,      // the payload contains all values of `version`
    kAdd = 1,       // the decoded payload is added to the values of `base`
    kUlpDelta = 2,  // the payload is an ulp delta (common/codec/delta/ulp_delta.h)
  };

  Kind kind = Kind::kFull;
  Version base;  // unused by kFull
  Version version;
  uint64_t hash = 0;  // hash (HashValues) of the values of `version`; 0 if not computed
  ByteChain payload;  // empty if `base` equals `version`

  bool operator==(const PublishedDelta&) const = default;
};

// Deltas in the order in which a reader applies them.
using DeltaChain = std::vector<std::shared_ptr<const PublishedDelta>>;

class VersionLog {
 public:
  // Creates an empty log whose newest version is BEGIN. The log stores at most MAX_BYTES of
  // payloads.
  VersionLog(Version begin, size_t max_bytes) : newest_(begin), max_bytes_(max_bytes) {}

  // Adds DELTA. A delta larger than the limit empties the log, and Since() then returns nullopt for
  // all older versions. REQUIRES: delta.base == newest(); delta.version > newest().
  void Append(PublishedDelta delta);

  Version newest() const { return newest_; }
  // Returns the oldest version from which deltas lead to newest(). A reader with an older version
  // needs all values.
  Version oldest() const { return deltas_.empty() ? newest_ : deltas_.front()->base; }
  // Returns whether the log contains a chain that starts at BASE.
  bool Contains(Version base) const;
  // Returns the deltas from BASE to newest(). Returns an empty chain if BASE equals newest(), and
  // nullopt if the log contains no chain that starts at BASE.
  std::optional<DeltaChain> Since(Version base) const;
  // Returns a delta without a change, for a reader that holds newest().
  std::shared_ptr<const PublishedDelta> Unchanged() const;

 private:
  // Returns the first delta of the chain that starts at BASE, or the end of deltas_.
  DeltaChain::const_iterator Find(Version base) const;

  Version newest_;
  size_t max_bytes_;
  size_t bytes_ = 0;
  DeltaChain deltas_;  // a chain without gaps that ends at newest_
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_PUBLISH_VERSION_LOG_H_
