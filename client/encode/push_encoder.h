// PushEncoder: turns the gradients of a model's shards into pushes. It chooses the codec, sets the
// weight (the number of examples), and counts the examples of late pushes with the shard's next
// push. A ShardEncoder stores the residuals and momenta; the PushEncoder stores the number of late
// examples of each shard.
//
//   gradient of a shard    push
//   finite                 payload = C(decay * residual + correct(factor * gradient)),
//                          weight = examples
//   not finite             no payload, weight 0; residual and momentum do not change
//
// After SendDense, C is a dense codec for all shards, so that a worker that leaves takes no
// residual with it.
//
// The decay is ClientOptions::residual_decay, the factor comes from GradientClip, and `correct` is
// momentum correction (momentum_correction.h).
// C is the codec of the step (push_schedule.h) or, if the client chooses codecs at run time, the
// codec of the shard (codec_tuner.h, UseCodecs). If C is not dense or has fewer than 8 bits per
// value, shards of vectors use a dense codec of 8 bits or more instead, because vectors are small
// and the model is sensitive to errors in them (docs/decisions/0041; Lin et al. 2018). The codec of
// a parameter group replaces all of these, for the whole run.
#ifndef THINWIRE_CLIENT_ENCODE_PUSH_ENCODER_H_
#define THINWIRE_CLIENT_ENCODE_PUSH_ENCODER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/codec_tuner.h"
#include "client/encode/encoding_error.h"
#include "client/encode/host_shard_encoder.h"
#include "client/encode/live_residuals.h"
#include "client/encode/push_schedule.h"
#include "client/encode/residual_file.h"
#include "client/encode/shard_encoder.h"
#include "client/options/client_options.h"
#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/model/partition.h"
#include "proto/frame.h"

namespace thinwire::client {

// Not thread-safe. All functions return the errors of the ShardEncoder; comments name only
// additional errors.
class PushEncoder {
 public:
  // PARTITION and TUNER must outlive the encoder. If TUNER is not null, the tuner chooses the
  // codecs. If SHARDS is null, gradients are in the host's memory, and LIVE, if it is not null,
  // keeps the residuals; it must outlive the encoder. Errors: InvalidArgument if the options
  // describe no valid codec. REQUIRES: SHARDS or LIVE is null.
  static absl::StatusOr<std::unique_ptr<PushEncoder>> Make(
      const Partition& partition, const ClientOptions& options, const CodecTuner* tuner = nullptr,
      std::unique_ptr<ShardEncoder> shards = nullptr, LiveResiduals* live = nullptr);

  struct Encoded {
    PushEntry push;
    bool finite = true;  // false: the push has no examples and no payload
  };

  // Starts a step: all shards have been encoded for the steps before STEP.
  void BeginStep(Step step) {
    if (live_ != nullptr) live_->BeginStep(step);
  }
  bool may_begin() const { return begun_.size() < most_begun_; }
  bool may_finish() const { return !begun_.empty(); }
  // Begins to encode a push of FACTOR * GRADIENT. PUSH contains the shard, the step and the number
  // of examples. The gradient's values must outlive the matching Finish. REQUIRES: may_begin().
  absl::Status Begin(PushEntry push, const ShardGradient& gradient, float factor = 1);
  // Returns the oldest push that was begun and not finished. Its payload, examples and
  // late_examples are set. REQUIRES: may_finish().
  absl::StatusOr<Encoded> Finish();

  // Encodes all later pushes of shard s with SPECS[s], unless it is nullopt. SendDense goes before.
  // Errors: InvalidArgument if a spec describes no valid codec. REQUIRES: SPECS has one element per
  // shard.
  absl::Status UseCodecs(std::vector<std::optional<CodecSpec>> specs);
  // Encodes all later pushes with the dense codec CODEC, which needs no settings.
  void SendDense(CodecId codec);
  // Measures the errors of all later pushes, from a sum of 0, until the next call.
  void MeasureErrors(bool measures) {
    measures_errors_ = measures;
    if (measures) error_ = {};
  }
  bool measures_errors() const { return measures_errors_; }
  // Returns the measured errors.
  const EncodingError& error() const { return error_; }

  // A push states the late examples of its shard, so they do not count for later pushes unless the
  // push was late or refused.
  //
  // Records that the server refused the values of PUSH: its late examples count again. Call Refused
  // or Late at most once per push, in any order of the pushes.
  void Refused(const PushEntry& push);
  // Records that PUSH was late: adds the push's values to the residual, and the push's examples to
  // the late examples of the shard's next push.
  absl::Status Late(const PushEntry& push);
  // Adds the values of PUSH, except the values at the indices SELECTED, to the residual. PUSH was
  // accepted; SELECTED contains the indices that gTop-k selected, ascending. The push's examples do
  // not become late examples, because the server has already included them.
  absl::Status ReturnUnselected(const PushEntry& push, std::span<const uint32_t> selected);

  // Returns the sum of the squares of GRADIENT's values, from which GradientClip computes the norm.
  absl::StatusOr<double> SumOfSquares(std::span<const float> gradient) {
    return shards_->SumOfSquares(gradient);
  }

  // Returns the residual, the momentum and the number of late examples of every shard. The result
  // is valid until the next call of another function. REQUIRES: no push is begun and not finished.
  absl::StatusOr<std::vector<ShardResidualsView>> residuals() const;
  // Returns the L1 norm of the values of PUSH, a result of Finish.
  double NormOf(const PushEntry& push) const;
  // Returns the L1 norm of all residuals. REQUIRES: no push is begun and not finished.
  absl::StatusOr<double> ResidualNorm() const;
  // Drops the pushes that are begun and not finished.
  absl::Status DropBegun();
  // Sets the residual, the momentum and the number of late examples of every shard. Errors:
  // FailedPrecondition if SAVED contains momenta and momentum correction is off. REQUIRES: SAVED
  // belongs to this partition; no push is begun and not finished.
  absl::Status Restore(SavedResiduals saved);
  // After Restore, records in the LiveResiduals, if there are any, that shard s is that before
  // NEXT[s].
  void Keep(std::span<const Step> next);

 private:
  struct Shard {
    size_t value_count;
    bool is_vector;
    uint32_t group;
    // The examples of late pushes whose values are in the residual, and that no push has stated.
    uint32_t late_examples = 0;
  };
  // The codec of a parameter group; null: the group has none.
  struct GroupCodec {
    CodecSpec spec;
    std::unique_ptr<const Codec> codec;
  };
  struct ShardCodec {
    CodecSpec spec;
    const Codec& codec;
  };

  PushEncoder(const Partition& partition, const ClientOptions& options, const CodecTuner* tuner,
              PushSchedule schedule, std::vector<GroupCodec> group_codecs,
              std::unique_ptr<ShardEncoder> shards, const HostShardEncoder* host,
              LiveResiduals* live);

  ShardCodec CodecOf(ShardId shard, Step step);
  // Returns what the LiveResiduals keep of SHARD. REQUIRES: live_ is not null.
  ShardResidualsView Kept(ShardId shard, uint32_t late_examples) const;
  // Adds the values of PUSH, except the values at the indices SELECTED, to the residual
  absl::Status GiveBack(const PushEntry& push, std::span<const uint32_t> selected);

  const WorkerId worker_;
  const bool corrects_momentum_;
  const CodecTuner* const tuner_;
  const PushSchedule schedule_;
  const std::unique_ptr<ShardEncoder> shards_;
  const HostShardEncoder* const host_;  // shards_ if live_ is not null
  LiveResiduals* const live_;           // null: the residuals end with the process
  const size_t most_begun_;
  std::vector<Shard> memory_;
  std::vector<GroupCodec> group_codecs_;  // by group; empty if the tensors have no groups
  std::deque<PushEntry> begun_;

  CodecSpec spec_;  // the spec from which matrix_codec_ and vector_codec_ were made
  std::unique_ptr<const Codec> matrix_codec_;
  std::unique_ptr<const Codec> vector_codec_;
  // By shard number; empty before UseCodecs.
  std::vector<std::optional<CodecSpec>> shard_specs_;
  std::vector<std::unique_ptr<const Codec>> shard_codecs_;
  std::unique_ptr<const Codec> dense_codec_;  // null before SendDense
  bool measures_errors_ = false;
  EncodingError error_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_PUSH_ENCODER_H_
