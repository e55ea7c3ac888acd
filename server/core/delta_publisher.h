// DeltaPublisher: the parameters as the workers know them. Masters stay exact; `published` follows
// them in steps that are small on the wire.
//
//   through a codec C   D = C(masters - published);  published += decode(D)       kind kAdd
//   exactly             D = how far each value moved;  published = masters           kind kUlpDelta
//
// So what a step loses is in the next one's difference, and every reader who applies the steps in
// order holds `published` bit by bit. A reader that the log cannot bring to the newest version, or
// not in fewer bytes, gets `published` whole in fp32, as does one that holds nothing. (EF21-P:
// Gruntkowska, Tyurin and Richtarik 2022.)
//
// Lives on its shard's strand; what it gives may be used on any thread.
#ifndef THINWIRE_SERVER_CORE_DELTA_PUBLISHER_H_
#define THINWIRE_SERVER_CORE_DELTA_PUBLISHER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>

#include "common/codec/codec.h"
#include "common/float_array.h"
#include "common/ids.h"
#include "server/core/version_log.h"

namespace thinwire {

struct PublishOptions {
  std::optional<CodecSpec> codec;  // none: exactly what changed
  size_t log_bytes = size_t{4} << 20;
  uint32_t every = 0;  // kPush: so many updates are published together; 0: the live workers' number
};

class DeltaPublisher {
 public:
  // One version in so many goes with its hash.
  static constexpr uint64_t kHashEvery = 16;

  // The published values lie in MEMORY, which outlives the publisher. REQUIRES: MakeCodec accepts
  // the codec.
  explicit DeltaPublisher(const PublishOptions& options,
                          std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  // The first values. Everything below REQUIRES that they came.
  void Start(Version version, std::span<const float> masters);
  // Publishes MASTERS, which are those of VERSION. REQUIRES: version > this->version().
  void Publish(Version version, std::span<const float> masters);

  Version version() const { return log_->newest(); }
  std::span<const float> published() const { return published_; }
  // As it is now: a later step makes another one.
  std::shared_ptr<const VersionLog> log() const { return log_; }
  // What brings a reader that holds HELD, or nothing, to version(). At least one delta.
  DeltaChain Answer(std::optional<Version> held);

 private:
  void Restart(Version version);
  // The step that makes `published` the masters; nothing where the whole is smaller.
  std::optional<PublishedDelta> Exactly(std::span<const float> masters);
  PublishedDelta Through(Version version, std::span<const float> masters);
  const std::shared_ptr<const PublishedDelta>& Whole();

  const PublishOptions options_;
  std::unique_ptr<const Codec> codec_;  // null: exactly
  CodecMemory memory_;
  FloatArray published_;
  std::shared_ptr<const VersionLog> log_;
  std::shared_ptr<const PublishedDelta> whole_;  // of version(), if a reader needed it
  uint64_t step_count_ = 0;
  uint64_t hash_ = 0;  // of version(), if it was computed
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_DELTA_PUBLISHER_H_
