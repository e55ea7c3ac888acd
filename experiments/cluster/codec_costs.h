// CodecCosts is the virtual time that machines spend on encoding and decoding (codec_cost in
// proto/experiment.proto). A codec that is not listed takes no time. Immutable.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_CODEC_COSTS_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_CODEC_COSTS_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "common/codec/codec.h"
#include "common/memory/byte_chain.h"
#include "proto/experiment.pb.h"

namespace thinwire::lab {

class CodecCosts {
 public:
  explicit CodecCosts(const Machines& machines) {
    for (const CodecCost& cost : machines.codec_cost()) {
      costs_[static_cast<uint32_t>(cost.codec())] = cost;
    }
  }

  // Returns the time to encode or to decode a shard of VALUE_COUNT values with CODEC.
  absl::Duration Encode(CodecId codec, size_t value_count) const {
    return EncodeOf(static_cast<uint32_t>(codec), value_count);
  }
  absl::Duration Decode(CodecId codec, size_t value_count) const {
    return DecodeOf(static_cast<uint32_t>(codec), value_count);
  }
  // Return the time of PAYLOAD, which names its codec. An empty payload takes no time.
  absl::Duration Encode(const ByteChain& payload, size_t value_count) const {
    return EncodeOf(CodecOf(payload), value_count);
  }
  absl::Duration Decode(const ByteChain& payload, size_t value_count) const {
    return DecodeOf(CodecOf(payload), value_count);
  }

 private:
  // The first byte of a payload is the id of its codec (common/codec/payload.h). No codec has id 0.
  static uint32_t CodecOf(const ByteChain& payload) {
    return payload.empty() ? 0 : static_cast<uint32_t>(payload.At(0));
  }
  absl::Duration EncodeOf(uint32_t codec, size_t value_count) const {
    const CodecCost& cost = CostOf(codec);
    return Time(cost.encode_us_per_shard(), cost.encode_ns_per_value(), value_count);
  }
  absl::Duration DecodeOf(uint32_t codec, size_t value_count) const {
    const CodecCost& cost = CostOf(codec);
    return Time(cost.decode_us_per_shard(), cost.decode_ns_per_value(), value_count);
  }
  const CodecCost& CostOf(uint32_t codec) const {
    const auto cost = costs_.find(codec);
    return cost == costs_.end() ? CodecCost::default_instance() : cost->second;
  }
  static absl::Duration Time(double us_per_shard, double ns_per_value, size_t value_count) {
    return absl::Nanoseconds(1e3 * us_per_shard + ns_per_value * static_cast<double>(value_count));
  }

  std::map<uint32_t, CodecCost> costs_;  // by the codec's id
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_CODEC_COSTS_H_
