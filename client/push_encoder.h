// PushEncoder: turns the gradients of a model's shards into pushes, and remembers what they still
// owe: the codec's loss, the values of late pushes, the examples behind those values, and the
// momentum, where it is applied here.
//
//   gradient of a shard    push
//   finite                 payload = C(residual + correct(factor * gradient)), weight = examples
//   not finite             no payload, weight 0; residual and momentum stay as they were
//
// C is the step's (push_schedule.h) or, where it is chosen, the shard's (codec_tuner.h). Where it
// is sparse or coarse, vectors go dense and in a byte at least (docs/decisions/0041): there is
// little of them and all of it matters (Lin et al. 2018).
#ifndef THINWIRE_CLIENT_PUSH_ENCODER_H_
#define THINWIRE_CLIENT_PUSH_ENCODER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/codec_tuner.h"
#include "client/momentum_correction.h"
#include "client/options.h"
#include "client/push_schedule.h"
#include "client/residual_file.h"
#include "common/buffer_pool.h"
#include "common/codec/codec.h"
#include "common/codec/error_feedback.h"
#include "common/ids.h"
#include "common/partition.h"
#include "proto/frame.h"

namespace thinwire::client {

// Not thread-safe.
class PushEncoder {
 public:
  // PARTITION outlives the encoder, and so does TUNER, which chooses the codecs where there is one.
  // Errors: InvalidArgument for options that make no codec.
  static absl::StatusOr<std::unique_ptr<PushEncoder>> Make(const Partition& partition,
                                                           const ClientOptions& options,
                                                           const CodecTuner* tuner = nullptr);

  // A push of FACTOR * GRADIENT, the values of ENTRY's shard at ENTRY's step, weighted with ENTRY's
  // examples; sets ENTRY's payload, examples and late_examples. False: it was not finite and goes
  // with weight 0. With an OWNER, who keeps GRADIENT alive and unchanged until the push is judged,
  // what goes as it is goes without a copy.
  bool Encode(std::span<const float> gradient, PushEntry& entry,
              const std::shared_ptr<const void>& owner = nullptr, float factor = 1);

  // PUSH was accepted. Once per push, as Late is.
  void Accepted(const PushEntry& push);
  // PUSH came too late: its values go into a later push of the shard, its examples are owed.
  void Late(const PushEntry& push);
  // PUSH was accepted, but of its values only those at TAKEN, which rises, were used: the others go
  // into a later push of the shard. No examples are owed for them: they counted in this one.
  void PutBack(const PushEntry& push, std::span<const uint32_t> taken);

  // What is owed of every shard; valid until the next call of another function.
  std::vector<ShardResidualsView> residuals() const;
  // Goes on from what residuals() was. Errors: FailedPrecondition for a momentum where there is no
  // momentum correction. REQUIRES: of this partition; nothing was encoded yet.
  absl::Status Restore(SavedResiduals saved);

 private:
  struct ShardMemory {
    bool is_vector;
    ErrorFeedback feedback;
    MomentumCorrection correction;
    uint32_t late_examples = 0;
  };

  PushEncoder(const Partition& partition, const ClientOptions& options, const CodecTuner* tuner,
              PushSchedule schedule);

  const Codec& CodecOf(ShardId shard, Step step);
  // FACTOR * GRADIENT, valid until the next call; nothing unless all of it is finite.
  std::optional<std::span<const float>> Scaled(std::span<const float> gradient, float factor);

  const WorkerId worker_;
  const CodecTuner* const tuner_;
  const PushSchedule schedule_;
  std::vector<ShardMemory> shards_;
  BufferPool pool_;

  CodecSpec spec_;  // of the two codecs
  std::unique_ptr<const Codec> matrix_codec_;
  std::unique_ptr<const Codec> vector_codec_;
  std::vector<float> scaled_;
  std::vector<float> direction_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PUSH_ENCODER_H_
