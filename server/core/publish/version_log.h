// VersionLog keeps the newest published deltas of a shard, so that a reader of an older version
// receives the changes since then instead of all values.
//
//   Append(4 -> 5)  Append(5 -> 8)  Append(8 -> 9)
//   Since(5)   the deltas 5 -> 8 and 8 -> 9
//   Since(9)   an empty chain: the reader is up to date
//   Since(6)   nothing: version 6 was never published
//   Since(3)   nothing: the log begins after version 3
//
// The log is bounded in bytes and in deltas, and drops the oldest first. Not thread-safe. A copy
// shares the deltas, which are immutable.
#ifndef THINWIRE_SERVER_CORE_PUBLISH_VERSION_LOG_H_
#define THINWIRE_SERVER_CORE_PUBLISH_VERSION_LOG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/byte_chain.h"
#include "common/ids.h"

namespace thinwire {

// The change from version BASE to version VERSION. The numbers of the kinds are those of the wire
// (Parameters.Kind).
struct PublishedDelta {
  enum class Kind : uint8_t {
    kFull = 0,  // the payload holds all values of VERSION
    kAdd = 1,   // the payload is added to the values of BASE
    // Each value that the payload names moves by a number of floats
    // (common/codec/delta/ulp_delta.h).
    kUlpDelta = 2,
  };

  Kind kind = Kind::kFull;
  Version base;  // unused by kFull
  Version version;
  uint64_t hash = 0;  // HashValues of VERSION; 0 if not computed
  ByteChain payload;  // empty if base equals version

  bool operator==(const PublishedDelta&) const = default;
};

// Deltas in the order in which a reader applies them.
using DeltaChain = std::vector<std::shared_ptr<const PublishedDelta>>;

class VersionLog {
 public:
  // An empty log whose newest version is BEGIN. It keeps at most MAX_BYTES of payloads.
  VersionLog(Version begin, size_t max_bytes) : newest_(begin), max_bytes_(max_bytes) {}

  // Adds DELTA. A delta larger than the log empties it, so that no older reader can be brought up
  // to date. REQUIRES: delta.base == newest(); delta.version > newest().
  void Append(PublishedDelta delta);

  Version newest() const { return newest_; }
  // Returns the deltas from BASE to newest(): an empty chain if they are equal, nullopt if no chain
  // in the log starts at BASE.
  std::optional<DeltaChain> Since(Version base) const;

 private:
  Version newest_;
  size_t max_bytes_;
  size_t bytes_ = 0;
  DeltaChain deltas_;  // contiguous, ending at newest_
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_PUBLISH_VERSION_LOG_H_
