// CodecTuner: chooses the push codec of each group of a model's tensors while the run goes on. It
// measures the candidate codecs on this machine when it is made and the network's goodput in every
// step, and applies the rule of codec_choice.h.
//
//   group          tensors of                    candidates
//   matrices       two dimensions                all
//   convolutions   three dimensions or more      all
//   vectors        one dimension or none         dense codecs of 8 bits or more (decisions/0041)
//
// All shards of a group use one codec. Groups without a tensor in the model are left out.
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
#include "common/clock.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "common/partition.h"

namespace thinwire::client {

// Not thread-safe.
class CodecTuner {
 public:
  // DEVICE is the device that holds the gradients; null: they are in the host's memory. Errors:
  // those of MeasureCodecs. REQUIRES: options.choose has a value.
  static absl::StatusOr<std::unique_ptr<CodecTuner>> Make(const Partition& partition,
                                                          const ClientOptions& options,
                                                          const Device* device, Clock& clock);

  // Return the codec of SHARD's pushes in the current step.
  const CodecSpec& SpecOf(ShardId shard) const { return GroupOf(shard).choice.spec(); }
  const Codec& CodecOf(ShardId shard) const { return *GroupOf(shard).codec; }
  // Returns the meter, which the caller informs of all pushes sent, verdicts and encodings.
  WireMeter& meter() { return meter_; }
  // Ends a step in which every push has a verdict. Returns whether a choice changed or got its
  // first reason.
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

#endif  // THINWIRE_CLIENT_ENCODE_CODEC_TUNER_H_
