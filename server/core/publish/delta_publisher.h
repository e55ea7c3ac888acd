// DeltaPublisher keeps the parameters as the workers know them. Masters stay exact; the published
// values follow them in deltas that are small on the wire.
//
//   with a codec C   delta = C(masters - published);   published += decode(delta)   kind kAdd
//   without          delta = how far each value moved; published = masters          kind kUlpDelta
//
// The loss of one delta is part of the next difference, and every reader that applies the deltas in
// order holds the published values bit by bit. A reader gets all published values in fp32 if it
// holds none, if the log does not reach back to its version, or if the deltas have more bytes.
// (EF21-P: Gruntkowska, Tyurin and Richtarik 2022.)
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

#include "common/codec/codec.h"
#include "common/float_array.h"
#include "common/ids.h"
#include "common/spec/publish_options.h"
#include "server/core/publish/version_log.h"

namespace thinwire {

class DeltaPublisher {
 public:
  // Every sixteenth published version carries its hash.
  static constexpr uint64_t kHashEvery = 16;

  // The published values lie in MEMORY, which outlives the publisher. REQUIRES: MakeCodec accepts
  // the codec.
  explicit DeltaPublisher(const PublishOptions& options,
                          std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  // Sets the first values. All methods below REQUIRE that Start was called.
  void Start(Version version, std::span<const float> masters);
  // Publishes MASTERS, the masters of VERSION. REQUIRES: version > this->version().
  void Publish(Version version, std::span<const float> masters);

  Version version() const { return log_->newest(); }
  std::span<const float> published() const { return published_; }
  // Returns the log of now; Publish replaces it and leaves this one unchanged.
  std::shared_ptr<const VersionLog> log() const { return log_; }
  // Returns the deltas that bring a reader of HELD (nullopt: a reader without values) to version().
  // At least one delta.
  DeltaChain DeltasSince(std::optional<Version> held);

 private:
  void Restart(Version version);
  // Returns the delta that makes the published values equal to MASTERS, or nullopt if all values
  // take fewer bytes.
  std::optional<PublishedDelta> ExactDelta(std::span<const float> masters);
  PublishedDelta CodecDelta(Version version, std::span<const float> masters);
  const std::shared_ptr<const PublishedDelta>& FullDelta();

  const PublishOptions options_;
  std::unique_ptr<const Codec> codec_;  // null: exact deltas
  CodecMemory memory_;
  FloatArray published_;
  std::shared_ptr<const VersionLog> log_;
  std::shared_ptr<const PublishedDelta> full_;  // of version(), null until a reader needs it
  uint64_t publish_count_ = 0;
  uint64_t hash_ = 0;  // of version(), 0 until computed
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_PUBLISH_DELTA_PUBLISHER_H_
