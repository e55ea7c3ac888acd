// CodecTuner: the push codec of each group of a model's tensors, chosen as the run goes. It
// measures the candidates on this machine when it is made, and the wire in every step, and follows
// the rule of codec_choice.h.
//
//   group          tensors                  candidates
//   matrices       of two dimensions        all
//   convolutions   of more                  all
//   vectors        of fewer                 those that carry parameters (docs/decisions/0041)
//
// Shards of one group differ in nothing that the choice depends on. A group that the model has no
// tensor of is not chosen for.
#ifndef THINWIRE_CLIENT_CODEC_TUNER_H_
#define THINWIRE_CLIENT_CODEC_TUNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/codec_choice.h"
#include "client/device.h"
#include "client/options.h"
#include "client/wire_meter.h"
#include "common/clock.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "common/partition.h"

namespace thinwire::client {

// Not thread-safe.
class CodecTuner {
 public:
  // DEVICE: where gradients lie, null for the host's memory. Errors: those of MeasureCodecs.
  // REQUIRES: options.choose.
  static absl::StatusOr<std::unique_ptr<CodecTuner>> Make(const Partition& partition,
                                                          const ClientOptions& options,
                                                          const Device* device, Clock& clock);

  // Of the pushes of SHARD in this step.
  const CodecSpec& SpecOf(ShardId shard) const { return GroupOf(shard).choice.spec(); }
  const Codec& CodecOf(ShardId shard) const { return *GroupOf(shard).codec; }
  // Is to be told of everything that is sent in a step, and judged.
  WireMeter& meter() { return meter_; }
  // The step is over, every push judged. Whether any choice changed, or its first reason.
  bool EndStep();

  std::vector<GroupCodec> choices() const;

 private:
  struct Group {
    std::string name;
    CodecChoice choice;
    std::unique_ptr<const Codec> codec;
  };

  CodecTuner() = default;

  const Group& GroupOf(ShardId shard) const { return groups_[group_of_[shard.value]]; }

  std::vector<Group> groups_;
  std::vector<uint32_t> group_of_;  // per shard
  WireMeter meter_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_CODEC_TUNER_H_
