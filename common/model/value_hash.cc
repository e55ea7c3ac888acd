#include "common/model/value_hash.h"

#include <array>
#include <bit>
#include <cstddef>

namespace thinwire {
namespace {

constexpr size_t kLanes = 4;
constexpr uint64_t kBasis = 0xcbf29ce484222325;

constexpr uint64_t Mix(uint64_t hash, uint64_t bits) { return (hash ^ bits) * 0x100000001b3; }

}  // namespace

uint64_t HashValues(std::span<const float> values) {
  std::array<uint64_t, kLanes> lanes;
  lanes.fill(kBasis);
  const auto add = [&](size_t i, size_t lane) {
    lanes[lane] = Mix(lanes[lane], std::bit_cast<uint32_t>(values[i]));
  };
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
  }
  for (size_t lane = 0; i < values.size(); ++i, ++lane) add(i, lane);
  uint64_t hash = kBasis;
  for (const uint64_t lane : lanes) hash = Mix(hash, lane);
  return hash != 0 ? hash : 1;
}

uint64_t HashTensors(std::span<const std::span<const float>> tensors) {
  uint64_t hash = kBasis;
  for (const std::span<const float> values : tensors) hash = Mix(hash, HashValues(values));
  return hash != 0 ? hash : 1;
}

}  // namespace thinwire
