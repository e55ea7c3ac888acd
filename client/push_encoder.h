// PushEncoder: turns the gradients of a model's shards into pushes: in which codec, of what weight,
// and with whose examples. What a shard still owes of its values is a ShardEncoder's; what it owes
// of examples is remembered here.
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
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/codec_tuner.h"
#include "client/options.h"
#include "client/push_schedule.h"
#include "client/residual_file.h"
#include "client/shard_encoder.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "common/partition.h"
#include "proto/frame.h"

namespace thinwire::client {

// Not thread-safe. All functions fail only as SHARDS does.
class PushEncoder {
 public:
  // PARTITION outlives the encoder, and so does TUNER, which chooses the codecs where there is one.
  // Without SHARDS the gradients are in the host's memory. Errors: InvalidArgument for options that
  // make no codec.
  static absl::StatusOr<std::unique_ptr<PushEncoder>> Make(
      const Partition& partition, const ClientOptions& options, const CodecTuner* tuner = nullptr,
      std::unique_ptr<ShardEncoder> shards = nullptr);

  struct Encoded {
    PushEntry push;
    bool finite = true;  // if not, it goes with weight 0
  };

  bool may_begin() const { return begun_.size() < most_begun_; }
  bool may_finish() const { return !begun_.empty(); }
  // Begins a push of FACTOR * GRADIENT, the values of PUSH's shard at PUSH's step, weighted with
  // PUSH's examples. GRADIENT stays until it is finished. REQUIRES: may_begin().
  absl::Status Begin(PushEntry push, const ShardGradient& gradient, float factor = 1);
  // The oldest that was begun, with its payload, examples and late_examples. REQUIRES:
  // may_finish().
  absl::StatusOr<Encoded> Finish();

  // PUSH was accepted. Once per push, as Late is.
  void Accepted(const PushEntry& push);
  // PUSH came too late: its values go into a later push of the shard, its examples are owed.
  absl::Status Late(const PushEntry& push);
  // PUSH was accepted, but of its values only those at TAKEN, which rises, were used: the others go
  // into a later push of the shard. No examples are owed for them: they counted in this one.
  absl::Status PutBack(const PushEntry& push, std::span<const uint32_t> taken);

  // The sum that a clipped gradient's norm is made of.
  absl::StatusOr<double> SumOfSquares(std::span<const float> gradient) {
    return shards_->SumOfSquares(gradient);
  }

  // What is owed of every shard; valid until the next call of another function.
  absl::StatusOr<std::vector<ShardResidualsView>> residuals() const;
  // Goes on from what residuals() was. Errors: FailedPrecondition for a momentum where there is no
  // momentum correction. REQUIRES: of this partition; nothing was encoded yet.
  absl::Status Restore(SavedResiduals saved);

 private:
  struct Shard {
    size_t value_count;
    bool is_vector;
    uint32_t late_examples = 0;
  };
  struct ShardCodec {
    CodecSpec spec;
    const Codec& codec;
  };

  PushEncoder(const Partition& partition, const ClientOptions& options, const CodecTuner* tuner,
              PushSchedule schedule, std::unique_ptr<ShardEncoder> shards);

  ShardCodec CodecOf(ShardId shard, Step step);
  // Adds the values of PUSH to its shard's residual, except at the indices TAKEN.
  absl::Status GiveBack(const PushEntry& push, std::span<const uint32_t> taken);

  const WorkerId worker_;
  const bool corrects_;  // momentum
  const CodecTuner* const tuner_;
  const PushSchedule schedule_;
  const std::unique_ptr<ShardEncoder> shards_;
  const size_t most_begun_;
  std::vector<Shard> memory_;
  std::deque<PushEntry> begun_;

  CodecSpec spec_;  // of the two codecs
  std::unique_ptr<const Codec> matrix_codec_;
  std::unique_ptr<const Codec> vector_codec_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PUSH_ENCODER_H_
