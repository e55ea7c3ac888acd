#include "client/codec_speed.h"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/byte_chain.h"
#include "common/codec/codec.h"
#include "common/codec/error_feedback.h"

namespace thinwire::client {
namespace {

// The first fills caches, residual and threshold.
constexpr int kRuns = 4;

double FastestSeconds(Clock& clock, absl::FunctionRef<void()> work) {
  absl::Duration least = absl::InfiniteDuration();
  for (int i = 0; i < kRuns; ++i) {
    const absl::Time begin = clock.Now();
    work();
    least = std::min(least, clock.Now() - begin);
  }
  return absl::ToDoubleSeconds(least);
}

// The sum of four uniform numbers is near enough to a normal one, and cheaper.
std::vector<float> RandomValues(size_t count) {
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> uniform(-1e-3f, 1e-3f);
  std::vector<float> values(count);
  for (float& value : values) {
    value = uniform(random) + uniform(random) + uniform(random) + uniform(random);
  }
  return values;
}

}  // namespace

absl::StatusOr<CodecCost> MeasureCodec(const CodecSpec& spec, size_t values, Clock& clock) {
  const absl::StatusOr<std::unique_ptr<const Codec>> codec = MakeCodec(spec);
  if (!codec.ok()) return codec.status();
  const std::vector<float> gradient = RandomValues(values);
  ErrorFeedback feedback(values, true);
  const bool as_it_is = feedback.SendsAsItIs(**codec);
  std::vector<std::byte> bytes((*codec)->MaxPayloadBytes(values));
  size_t size = 0;
  const double encode =
      FastestSeconds(clock, [&] { size = feedback.Encode(**codec, gradient, Turn{}, bytes); });
  bytes.resize(size);
  const ByteChain payload{std::move(bytes)};
  std::vector<float> sum(values);
  const double decode = FastestSeconds(clock, [&] { DecodePayloadAdd(payload, 1, sum); });
  const auto count = static_cast<double>(values);
  return CodecCost{.spec = spec,
                   .bytes = static_cast<double>(size) / count,
                   .encode_seconds = as_it_is ? 0 : encode / count,
                   .decode_seconds = decode / count};
}

}  // namespace thinwire::client
