// DeltaPublisher stores the published parameters, which the workers hold, and updates them to
// follow the exact masters. Each update is a delta that is small on the wire.
//
//   with a codec C   delta = C(masters - published);   published += decode(delta)   kind kAdd
//   without codec    delta = ulp delta(published, masters);  published = masters    kind kUlpDelta
//
// The next delta includes the encoding error of the previous delta, and every reader that applies
// the deltas in order holds exactly the published parameters. A reader receives all published
// parameters in fp32 if it holds none, if the log does not contain its version, if the deltas would
// be larger, or if a value is so large that a difference could overflow. The method is EF21-P
// (Gruntkowska, Tyurin and Richtarik 2022).
//
// Lives on its shard's strand; returned deltas may be used on any thread.
#ifndef THINWIRE_SERVER_CORE_PUBLISH_DELTA_PUBLISHER_H_
#define THINWIRE_SERVER_CORE_PUBLISH_DELTA_PUBLISHER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/memory/byte_chain.h"
#include "common/memory/float_array.h"
#include "common/spec/publish_options.h"
#include "server/core/publish/version_log.h"

namespace thinwire {

// The published parameters without the log of past deltas.
struct PublishedSnapshot {
  Version version;
  uint64_t publish_count = 0;
  ByteChain values;  // floats

  bool operator==(const PublishedSnapshot&) const = default;
};

class DeltaPublisher {
 public:
  // Every sixteenth published version is sent with a hash, with which readers can check their
  // parameters.
  static constexpr uint64_t kHashEvery = 16;

  // MEMORY allocates the published parameters and must outlive the publisher. REQUIRES: MakeCodec
  // accepts the codec of OPTIONS.
  explicit DeltaPublisher(const PublishOptions& options,
                          std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  // Sets the published parameters to MASTERS at VERSION. All other methods REQUIRE: Start was
  // called.
  void Start(Version version, std::span<const float> masters);
  // Publishes MASTERS as version VERSION. REQUIRES: version > this->version().
  void Publish(Version version, std::span<const float> masters);

  Version version() const { return log_->newest(); }
  std::span<const float> published() const { return published_; }
  // Returns the current log, which is immutable. Publish creates a new log.
  std::shared_ptr<const VersionLog> log() const { return log_; }
  // Returns the deltas that bring a reader from published version HELD to version(). HELD is
  // nullopt if the reader has no parameters. The result contains at least one delta.
  DeltaChain DeltasSince(std::optional<Version> held);
  // Returns the published parameters of the version EARLIER, or nullopt if the log contains no
  // chain that starts at EARLIER. With a codec, the values may differ from those that were
  // published by rounding errors of fp32 additions.
  std::optional<std::vector<float>> PublishedAt(Version earlier) const;

  // Returns a copy of the current state. The log is not part of it: after Restore(), a reader of an
  // older version receives all published parameters, which are those that the deltas lead to.
  PublishedSnapshot Save() const;
  // Continues from SNAPSHOT, in place of Start(). Errors: InvalidArgument if SNAPSHOT has not
  // VALUE_COUNT values.
  absl::Status Restore(const PublishedSnapshot& snapshot, size_t value_count);

 private:
  void Restart(Version version);
  // Sets the published parameters to MASTERS. Returns the ulp delta of this change, or nullopt if
  // sending all values takes fewer bytes or less work.
  std::optional<PublishedDelta> ExactDelta(std::span<const float> masters);
  // Adds a delta made with the codec to the published parameters and returns it. Returns nullopt,
  // with MASTERS published, if a master or a published value is so large that a difference or the
  // result could overflow.
  std::optional<PublishedDelta> CodecDelta(Version version, std::span<const float> masters);
  const std::shared_ptr<const PublishedDelta>& FullDelta();

  const PublishOptions options_;
  std::unique_ptr<const Codec> codec_;  // null: the publisher makes exact ulp deltas
  CodecMemory memory_;
  FloatArray published_;
  std::shared_ptr<const VersionLog> log_;
  std::shared_ptr<const PublishedDelta> full_;  // all published values; null until a read needs it
  uint64_t publish_count_ = 0;
  uint64_t hash_ = 0;  // hash (HashValues) of the published values; 0 until computed
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_PUBLISH_DELTA_PUBLISHER_H_
