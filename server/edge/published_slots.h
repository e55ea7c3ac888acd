// PublishedSlots: one shard's newest encoded parameters, one slot per dense codec, and the log of
// what it published. The shard's strand fills them when a read is answered; every stream takes its
// bytes from them when its write starts, so that however many workers read, a version is encoded
// once per codec, and a slow reader gets the newest version instead of a queue of old ones.
//
// Thread-safe.
#ifndef THINWIRE_SERVER_EDGE_PUBLISHED_SLOTS_H_
#define THINWIRE_SERVER_EDGE_PUBLISHED_SLOTS_H_

#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "common/byte_chain.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "server/core/version_log.h"

namespace thinwire {

struct Published {
  Version version;
  Step frontier;
  ByteChain payload;
  ByteChain taken_list = {};  // of that version, as the shard has it

  bool operator==(const Published&) const = default;
};

// What brings a reader to the newest version published, and the frontier of that version.
struct PublishedDeltas {
  Step frontier;
  DeltaChain chain;
  ByteChain taken_list = {};  // of that version, as the shard has it
};

class PublishedSlots {
 public:
  void Put(CodecId codec, Published published) ABSL_LOCKS_EXCLUDED(mu_);
  // Empty before the first Put for CODEC.
  Published Get(CodecId codec) const ABSL_LOCKS_EXCLUDED(mu_);

  void PutLog(std::shared_ptr<const VersionLog> log, Step frontier, ByteChain taken_list = {})
      ABSL_LOCKS_EXCLUDED(mu_);
  // For a reader of HELD; nothing if no log leads on from there.
  std::optional<PublishedDeltas> Since(Version held) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  absl::flat_hash_map<CodecId, Published> slots_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const VersionLog> log_ ABSL_GUARDED_BY(mu_);
  Step log_frontier_ ABSL_GUARDED_BY(mu_);
  ByteChain log_taken_list_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_PUBLISHED_SLOTS_H_
