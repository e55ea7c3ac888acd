// PushEncoder: turns the gradients of a model's shards into pushes, and remembers what they still
// owe: the codec's loss, the values of late pushes, and the examples behind those values.
//
//   gradient of a shard    push
//   finite                 payload = C(residual + gradient), weight = examples
//   not finite             no payload, weight 0; the residual stays as it was
//
// Where gradients are sent sparsely, vectors still go dense, in the codec of the sparse values:
// there is little of them and all of it matters (Lin et al. 2018).
#ifndef THINWIRE_CLIENT_PUSH_ENCODER_H_
#define THINWIRE_CLIENT_PUSH_ENCODER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
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
  // PARTITION outlives the encoder; what WORKER draws at random is its own. Errors: InvalidArgument
  // for a spec that makes no codec.
  static absl::StatusOr<std::unique_ptr<PushEncoder>> Make(const Partition& partition,
                                                           const CodecSpec& spec,
                                                           bool error_feedback,
                                                           WorkerId worker = WorkerId{});

  // A push of GRADIENT, the values of ENTRY's shard at ENTRY's step, weighted with ENTRY's
  // examples; sets ENTRY's payload, examples and late_examples. False: it was not finite and goes
  // with weight 0. With an OWNER, who keeps GRADIENT alive and unchanged until the push is judged,
  // what goes as it is goes without a copy.
  bool Encode(std::span<const float> gradient, PushEntry& entry,
              const std::shared_ptr<const void>& owner = nullptr);

  // PUSH was accepted. Once per push, as Late is.
  void Accepted(const PushEntry& push);
  // PUSH came too late: its values go into a later push of the shard, its examples are owed.
  void Late(const PushEntry& push);

  // What is owed of SHARD, as ErrorFeedback::residual.
  std::span<const float> residual(ShardId shard) const;

 private:
  struct ShardMemory {
    ErrorFeedback feedback;
    uint32_t late_examples = 0;
    const Codec* codec;
  };

  PushEncoder(const Partition& partition, bool error_feedback, WorkerId worker,
              std::unique_ptr<const Codec> matrices, std::unique_ptr<const Codec> vectors);

  const WorkerId worker_;
  std::unique_ptr<const Codec> matrix_codec_;
  std::unique_ptr<const Codec> vector_codec_;
  std::vector<ShardMemory> shards_;
  BufferPool pool_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PUSH_ENCODER_H_
