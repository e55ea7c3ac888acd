// VersionLog: the newest steps of what a shard published, so that a reader who holds an older
// version is sent what changed since, and not everything.
//
//   Append(4 -> 5)  Append(5 -> 8)  Append(8 -> 9)
//   Since(5)  the deltas 5 -> 8 and 8 -> 9
//   Since(9)  none are needed
//   Since(6)  nothing: no reader was ever given version 6
//   Since(3)  nothing: the log no longer reaches back
//
// It is bounded in bytes and in deltas; the oldest go first. Not thread-safe; a copy shares the
// deltas, which are immutable.
#ifndef THINWIRE_SERVER_CORE_VERSION_LOG_H_
#define THINWIRE_SERVER_CORE_VERSION_LOG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/byte_chain.h"
#include "common/ids.h"

namespace thinwire {

// What brings a reader from BASE to VERSION. The numbers of the kinds are those of the wire.
struct PublishedDelta {
  enum class Kind : uint8_t {
    kFull = 0,  // the values of VERSION, whatever the reader held
    kAdd = 1,   // to be added
    kUlpDelta =
        2,  // by so many floats each value that the payload names (common/codec/delta/ulp_delta.h)
  };

  Kind kind = Kind::kFull;
  Version base;  // of kAdd and kUlpDelta
  Version version;
  uint64_t hash = 0;  // HashValues of VERSION; 0: was not computed
  ByteChain payload;  // empty if base is version: nothing changed

  bool operator==(const PublishedDelta&) const = default;
};

// To be applied in this order.
using DeltaChain = std::vector<std::shared_ptr<const PublishedDelta>>;

class VersionLog {
 public:
  // A log of nothing before BEGIN, which keeps at most MOST_BYTES of payloads.
  VersionLog(Version begin, size_t most_bytes) : newest_(begin), most_bytes_(most_bytes) {}

  // DELTA's base is not kept, and nobody can be brought beyond a delta that is larger than the log.
  // REQUIRES: delta.base == newest(); delta.version > newest().
  void Append(PublishedDelta delta);

  Version newest() const { return newest_; }
  // The deltas that bring a reader from BASE to newest(), none if it is there; nothing if the log
  // does not reach back to BASE.
  std::optional<DeltaChain> Since(Version base) const;

 private:
  Version newest_;
  size_t most_bytes_;
  size_t bytes_ = 0;
  DeltaChain deltas_;  // without a gap, up to newest_
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_VERSION_LOG_H_
