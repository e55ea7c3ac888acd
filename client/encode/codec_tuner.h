// CodecTuner: chooses the push codec of each kind of a model's tensors during the run. Make
// measures the cost of the candidate codecs on this machine. A WireMeter measures the network's
// goodput in every step. The rule of codec_choice.h then chooses the codec.
//
// All shards of a kind (common/model/tensor_kind.h) use one codec. Kinds that contain no tensor of the
// model are omitted.
#ifndef THINWIRE_CLIENT_ENCODE_CODEC_TUNER_H_
#define THINWIRE_CLIENT_ENCODE_CODEC_TUNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/encode/codec_choice.h"
#include "client/encode/device.h"
#include "client/encode/wire_meter.h"
#include "client/options/client_options.h"
#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/model/partition.h"
#include "common/time/clock.h"

namespace thinwire::client {

// Not thread-safe.
class CodecTuner {
 public:
  // DEVICE holds the gradients; null means the host's memory. Errors: those of MeasureCodecs.
  // REQUIRES: options.choose has a value.
  static absl::StatusOr<std::unique_ptr<CodecTuner>> Make(const Partition& partition,
                                                          const ClientOptions& options,
                                                          const Device* device, Clock& clock);

  // Both functions return the push codec of SHARD in the current step: SpecOf as a spec, CodecOf as
  // a codec object.
  const CodecSpec& SpecOf(ShardId shard) const { return GroupOf(shard).choice.spec(); }
  const Codec& CodecOf(ShardId shard) const { return *GroupOf(shard).codec; }
  // Returns the meter of the network's goodput. The caller reports every sent push, every verdict
  // and every encoding to the meter.
  WireMeter& meter() { return meter_; }
  // Ends a step in which every push has a verdict. Returns true if the codec of a group changed or
  // was chosen for the first time.
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
  std::vector<uint32_t> group_of_;  // the group number of each shard
  WireMeter meter_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_CODEC_TUNER_H_
