#include "experiments/efficiency/payload_bytes.h"

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/memory/byte_chain.h"
#include "common/spec/publish_options.h"
#include "kernels/mix_bits.h"
#include "server/core/publish/delta_publisher.h"

namespace thinwire::lab {
namespace {

// The standard deviation of the parameters. A selected value changes its parameter by about a
// quarter of it, so that the exact deltas take as many bits for each value as in training
// (docs/deltas.md, "Valid combinations").
constexpr float kScale = 0.05f;

// Returns approximately normal numbers of variance 1. Stream KEY is used in no other call.
std::vector<float> NormalValues(uint64_t count, uint64_t key) {
  std::vector<float> values(count);
  const uint64_t begin = kernels::MixBits(key);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t bits = kernels::MixBits(begin + i);
    int sum = -2 * 0xFFFF;
    for (int shift = 0; shift < 64; shift += 16) sum += static_cast<int>(bits >> shift & 0xFFFF);
    // The sum of four uniform numbers of the variance 65536^2 / 12 each.
    values[i] = static_cast<float>(sum) * (1.7320508f / 65536);
  }
  return values;
}

CheckedPayload Encoded(const Codec& codec, std::span<const float> values) {
  std::vector<std::byte> bytes(codec.MaxPayloadBytes(values.size()));
  bytes.resize(codec.Encode(values, RandomKeys(), bytes));
  return EncodedPayload(ByteChain(std::move(bytes)), values.size());
}

CodecSpec PushCodec(Compressor compressor, double density) {
  switch (compressor) {
    case Compressor::kFp8:
      return {.id = CodecId::kFp8E5m2};
    case Compressor::kOneBit:
      return {.id = CodecId::kOneBit};
    case Compressor::kTopK:
    case Compressor::kGtopk:
      return {.id = CodecId::kTopK,
              .density = density,
              .values = CodecId::kFp8E5m2,
              .indices = IndexCoder::kGolombRice};
  }
  return {};
}

}  // namespace

PayloadBytes MeasurePayloadBytes(Compressor compressor, uint64_t values, uint32_t workers,
                                 double density) {
  const bool sparse = compressor == Compressor::kTopK || compressor == Compressor::kGtopk;
  const CodecSpec spec = PushCodec(compressor, density);
  // The specs above are valid.
  const std::unique_ptr<const Codec> codec = MakeCodec(spec).value();
  PayloadBytes bytes;
  std::vector<float> sum(values, 0.0f);
  for (uint32_t worker = 0; worker < workers; ++worker) {
    const CheckedPayload push = Encoded(*codec, NormalValues(values, worker));
    bytes.push = push.bytes().size();
    DecodePayloadAdd(push, 1, sum);
  }
  if (compressor == Compressor::kGtopk) {
    const CheckedPayload selected = Encoded(*codec, sum);
    DecodePayload(selected, sum);
  }
  std::vector<float> masters = NormalValues(values, workers);
  for (float& value : masters) value *= kScale;
  DeltaPublisher publisher(
      PublishOptions{.codec = sparse ? std::nullopt : std::optional<CodecSpec>(spec)});
  publisher.Start(Version{0}, masters);
  for (uint64_t i = 0; i < values; ++i) masters[i] -= kScale / 16 * sum[i];
  publisher.Publish(Version{1}, masters);
  for (const auto& delta : publisher.DeltasSince(Version{0})) bytes.pull += delta->payload.size();
  return bytes;
}

}  // namespace thinwire::lab
