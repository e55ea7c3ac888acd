// PublishedSlots stores one shard's newest encoded parameters, one payload per dense codec, and the
// log of its published deltas. The shard's strand stores them when it answers a read; a stream
// fetches them when it starts to write a message. A version is therefore encoded once per codec for
// all workers, and a slow reader receives the newest version instead of a queue of old versions.
//
// Unsent answers of streams refer to the slots and contain no parameters. Readers that never read
// therefore cost one log and at most one full copy of the published values per shard, whatever
// their number.
//
// Thread-safe.
#ifndef THINWIRE_SERVER_SHARDS_STREAM_PUBLISHED_SLOTS_H_
#define THINWIRE_SERVER_SHARDS_STREAM_PUBLISHED_SLOTS_H_

#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/memory/byte_chain.h"
#include "server/core/publish/version_log.h"

namespace thinwire {

struct EncodedParameters {
  Version version;
  Step frontier;
  ByteChain payload;
  ByteChain selected_list = {};  // Shard::selected_list() at `version`

  bool operator==(const EncodedParameters&) const = default;
};

// A shard's published parameters at the newest published version.
struct PublishedState {
  std::shared_ptr<const VersionLog> log;
  // All values of a version in `log`, for readers whose version is not in `log`; null if there is
  // no such reader.
  std::shared_ptr<const PublishedDelta> full;
  Step frontier;
  ByteChain selected_list = {};  // Shard::selected_list()
};

// The deltas that bring a reader to the newest published version, and the frontier at the time when
// that version was published.
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

  void PutPublished(PublishedState published) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the last state, or a state without a log before the first PutPublished.
  PublishedState published() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the deltas for a reader that holds published version HELD (nullopt: no version), at
  // least one. REQUIRES: the log contains HELD, or `full` is set.
  PublishedDeltas Since(std::optional<Version> held) const;

 private:
  mutable absl::Mutex mu_;
  absl::flat_hash_map<CodecId, EncodedParameters> slots_ ABSL_GUARDED_BY(mu_);
  PublishedState published_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_STREAM_PUBLISHED_SLOTS_H_
