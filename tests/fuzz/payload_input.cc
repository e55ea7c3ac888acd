#include "tests/fuzz/payload_input.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"

namespace thinwire {
namespace {

constexpr size_t kHeadBytes = 4;

ByteChain Cut(std::span<const std::byte> bytes, size_t piece) {
  ByteChain chain;
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(piece, bytes.size()));
    chain.Append(ByteChain(std::vector<std::byte>(part.begin(), part.end())));
    bytes = bytes.subspan(part.size());
  }
  return chain;
}

bool IsSame(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Returns the codec specs whose payloads belong to FAMILY.
std::vector<CodecSpec> Specs(const Family& family) {
  std::vector<CodecSpec> specs;
  for (const CodecSpec& spec : AllCodecSpecs()) {
    const bool member = std::ranges::count(family.codecs, spec.id) > 0;
    if (member && (!family.indices || spec.indices == *family.indices)) specs.push_back(spec);
  }
  return specs;
}

std::vector<float> ValuesOfEntries(const CheckedPayload& payload) {
  std::vector<float> values(payload.count(), 0.0f);
  ForEachPayloadEntry(payload, [&](auto indices, auto entries) {
    for (size_t i = 0; i < indices.size(); ++i) values[indices[i]] = entries[i];
  });
  return values;
}

std::string FaultOfLimits(const CheckedPayload& payload, std::span<const float> values) {
  for (const float limit : {0.0f, 1e-3f, 1.0f, 1e6f, std::numeric_limits<float>::max()}) {
    if (!PayloadIsWithin(payload, limit)) continue;
    for (const float value : values) {
      if (!(std::abs(value) <= limit))
        return "a value exceeds a limit that PayloadIsWithin confirmed";
    }
  }
  return "";
}

}  // namespace

std::vector<Family> Families() {
  std::vector<Family> families = {
      {.name = "number_formats"},
      {.name = "codebooks"},
      {.name = "randomk", .codecs = {CodecId::kRandomK}},
      {.name = "topk_elias_fano", .codecs = {CodecId::kTopK}, .indices = IndexCoder::kEliasFano},
      {.name = "topk_golomb_rice", .codecs = {CodecId::kTopK}, .indices = IndexCoder::kGolombRice},
      {.name = "powersgd", .codecs = {CodecId::kPowerSgd}},
      {.name = "dct_topk", .codecs = {CodecId::kDctTopK}}};
  for (const std::string_view name : DenseCodecNames()) {
    const CodecId id = ParseCodec(name)->id;
    families[RowOf(id).family == CodecFamily::kDense ? 0 : 1].codecs.push_back(id);
  }
  return families;
}

std::vector<std::vector<std::byte>> Seeds(const Family& family) {
  std::vector<std::vector<std::byte>> seeds;
  for (const CodecSpec& spec : Specs(family)) {
    const auto codec = MakeCodec(spec).value();
    const auto number = std::ranges::find(family.codecs, spec.id) - family.codecs.begin();
    for (const size_t count : {1, 13, 300}) {
      const std::vector<std::byte> payload = Encoded(*codec, Laplace(count, 1));
      // The encoder wrote a dense payload, which belongs to another family.
      if (static_cast<CodecId>(payload[0]) != spec.id) continue;
      std::vector<std::byte>& seed = seeds.emplace_back();
      for (const size_t byte :
           {count % 256, count / 256, 60 * count, static_cast<size_t>(number)}) {
        seed.push_back(static_cast<std::byte>(byte));
      }
      seed.insert(seed.end(), payload.begin() + 1, payload.end());
    }
  }
  return seeds;
}

std::optional<PayloadInput> ReadInput(const Family& family, std::span<const std::byte> input) {
  if (input.size() < kHeadBytes) return std::nullopt;
  const auto head = [&](size_t i) { return std::to_integer<size_t>(input[i]); };
  std::vector<std::byte> bytes = {
      static_cast<std::byte>(family.codecs[head(3) % family.codecs.size()])};
  bytes.insert(bytes.end(), input.begin() + kHeadBytes, input.end());
  if (family.indices && bytes.size() > 1) {
    bytes[1] = (bytes[1] & std::byte{0xFE}) | static_cast<std::byte>(*family.indices);
  }
  return PayloadInput{.count = head(0) + head(1) % 16 * 256, .payload = Cut(bytes, 1 + head(2))};
}

std::string Fault(const PayloadInput& input) {
  const size_t count = input.count;
  const auto payload = CheckPayload(input.payload, count);
  if (!payload.ok()) return "";
  std::vector<float> whole(count), in_blocks(count), sum(count, 0.0f);
  DecodePayload(*payload, whole);
  DecodePayloadAdd(*payload, 1.0f, sum);
  DecodePayloadInBlocks(*payload, 1.0f, [&](size_t first, auto values) {
    std::ranges::copy(values, in_blocks.begin() + static_cast<std::ptrdiff_t>(first));
  });
  const std::vector<float> entries = PayloadIsSparse(*payload) ? ValuesOfEntries(*payload) : whole;
  for (size_t i = 0; i < count; ++i) {
    if (!IsSame(whole[i], in_blocks[i])) return "decoding in blocks gives another value";
    if (!IsSame(whole[i], sum[i])) return "adding gives another value";
    if (!IsSame(whole[i], entries[i])) return "the entries have another value";
  }
  return FaultOfLimits(*payload, whole);
}

}  // namespace thinwire
