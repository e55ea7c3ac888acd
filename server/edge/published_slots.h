// PublishedSlots stores one shard's newest encoded parameters, one slot per dense codec, and the
// log of its published deltas. The shard's strand fills the slots when it answers a read; a stream
// reads them when it starts to write a message. A version is therefore encoded once per codec for
// all workers, and a slow reader receives the newest version instead of a queue of old versions.
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
#include "server/core/publish/version_log.h"

namespace thinwire {

struct EncodedParameters {
  Version version;
  Step frontier;
  ByteChain payload;
  ByteChain selected_list = {};  // Shard::selected_list() at `version`

  bool operator==(const EncodedParameters&) const = default;
};

// The deltas that bring a reader to the newest published version, and the frontier at that version.
struct PublishedDeltas {
  Step frontier;
  DeltaChain chain;
  ByteChain selected_list = {};  // Shard::selected_list() at the newest published version
};

class PublishedSlots {
 public:
  void Put(CodecId codec, EncodedParameters parameters) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the newest parameters in CODEC, or empty parameters before the first Put for CODEC.
  EncodedParameters Get(CodecId codec) const ABSL_LOCKS_EXCLUDED(mu_);

  void PutLog(std::shared_ptr<const VersionLog> log, Step frontier, ByteChain selected_list = {})
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the deltas for a reader that holds published version HELD, or nullopt if the log
  // contains no chain from HELD.
  std::optional<PublishedDeltas> Since(Version held) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  absl::flat_hash_map<CodecId, EncodedParameters> slots_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const VersionLog> log_ ABSL_GUARDED_BY(mu_);
  Step log_frontier_ ABSL_GUARDED_BY(mu_);
  ByteChain log_selected_list_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_PUBLISHED_SLOTS_H_
