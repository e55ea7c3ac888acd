// A libFuzzer target for common/codec/delta/ulp_delta.h. If the first byte of an input is even, the
// next two bytes are the number of values and the remaining bytes are a payload. Otherwise the
// remaining bytes are pairs of an old and a new value; the delta of these values must round-trip.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "common/codec/delta/ulp_delta.h"

namespace thinwire {
namespace {

void Decode(size_t count, std::span<const std::byte> bytes) {
  const auto delta =
      UlpDelta::Check(ByteChain(std::vector<std::byte>(bytes.begin(), bytes.end())), count);
  if (!delta.ok()) return;
  std::vector<float> values(count, 1.5f);
  delta->Apply(values);
}

void RoundTrip(std::span<const std::byte> bytes) {
  std::vector<float> pairs(bytes.size() / sizeof(float));
  if (pairs.empty()) return;
  std::memcpy(pairs.data(), bytes.data(), pairs.size() * sizeof(float));
  std::vector<float> from, to;
  std::vector<uint32_t> indices;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (std::memcmp(&pairs[i], &pairs[i + 1], sizeof(float)) != 0) indices.push_back(from.size());
    from.push_back(pairs[i]);
    to.push_back(pairs[i + 1]);
  }
  const auto delta = UlpDelta::Check(EncodeUlpDelta(from, to, indices), from.size());
  if (!delta.ok()) abort();
  delta->Apply(from);
  if (!from.empty() && std::memcmp(from.data(), to.data(), from.size() * sizeof(float)) != 0) {
    abort();
  }
}

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (data[0] % 2 == 0) {
    thinwire::Decode(data[1] + 256u * data[2], bytes.subspan(3));
  } else {
    thinwire::RoundTrip(bytes.subspan(1));
  }
  return 0;
}
