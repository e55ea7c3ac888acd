#include "server/core/publish/delta_publisher.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/memory/array_bytes.h"
#include "common/memory/byte_chain.h"
#include "common/model/value_hash.h"
#include "kernels/arithmetic.h"
#include "kernels/differ.h"
#include "kernels/finite.h"
#include "kernels/select/float_order.h"

namespace thinwire {
namespace {

// The largest fraction of changed values for which an exact delta is sent. If more values changed,
// readers receive all values: that payload is only slightly larger and faster to encode.
constexpr double kMaxChangedFraction = 0.95;

// Returns whether no difference of two of VALUES overflows: all magnitudes are below 2^127, half of
// the range of floats.
bool DifferencesAreFinite(std::span<const float> values) {
  constexpr uint32_t kLargest = 0x7EFFFFFF;  // the largest float below 2^127
  return kernels::AllCodesWithin<kernels::Fp32>(std::as_bytes(values).data(), values.size(),
                                                kLargest);
}

size_t FullBytes(size_t count) { return 1 + count * sizeof(float); }

// Returns the payload that encode(OUT) writes. OUT is a span of MAX_BYTES bytes, and encode returns
// the length of the payload.
template <typename Encode>
ByteChain WritePayload(size_t max_bytes, const Encode& encode) {
  auto bytes = std::make_shared_for_overwrite<std::byte[]>(max_bytes);
  const size_t length = encode(std::span(bytes.get(), max_bytes));
  return ByteChain({bytes.get(), length}, bytes);
}

// Changes VALUES from the values after DELTA to those before it. REQUIRES: this process made DELTA,
// and its kind is not kFull.
void Undo(const PublishedDelta& delta, std::span<float> values) {
  if (delta.kind == PublishedDelta::Kind::kAdd) {
    return DecodePayloadAdd(EncodedPayload(delta.payload, values.size()), -1, values);
  }
  const UlpDelta moves = UlpDelta::Check(delta.payload, values.size()).value();
  moves.ForEachEntry([&](auto indices, auto differences) {
    for (size_t j = 0; j < indices.size(); ++j) {
      float& value = values[indices[j]];
      value = kernels::FloatOfOrdinal(kernels::OrdinalOfFloat(value) - differences[j]);
    }
  });
}

}  // namespace

DeltaPublisher::DeltaPublisher(const PublishOptions& options, std::pmr::memory_resource* memory)
    : options_(options), published_(memory) {
  if (options.codec.has_value()) codec_ = MakeCodec(*options.codec).value();
}

void DeltaPublisher::Start(Version version, std::span<const float> masters) {
  published_.assign(masters.begin(), masters.end());
  Restart(version);
}

void DeltaPublisher::Restart(Version version) {
  // The log keeps at most as many bytes as all values take, because a reader whose deltas take more
  // bytes receives all values instead.
  log_ = std::make_shared<const VersionLog>(
      version, std::min(options_.log_bytes, FullBytes(published_.size())));
}

void DeltaPublisher::Publish(Version version, std::span<const float> masters) {
  full_ = nullptr;
  std::optional<PublishedDelta> delta =
      codec_ == nullptr ? ExactDelta(masters) : CodecDelta(version, masters);
  hash_ = ++publish_count_ % kHashEvery == 0 ? HashValues(published_) : 0;
  if (!delta.has_value()) return Restart(version);
  delta->base = this->version();
  delta->version = version;
  delta->hash = hash_;
  auto log = std::make_shared<VersionLog>(*log_);
  log->Append(*std::move(delta));
  log_ = std::move(log);
}

std::optional<PublishedDelta> DeltaPublisher::ExactDelta(std::span<const float> masters) {
  const auto max_changed =
      static_cast<size_t>(kMaxChangedFraction * static_cast<double>(masters.size()));
  const size_t capacity = max_changed + kernels::kDifferPadding;
  const auto indices = std::make_unique_for_overwrite<uint32_t[]>(capacity);
  const auto count = kernels::CollectDifferent(masters, published_, {indices.get(), capacity});
  if (!count.has_value()) {
    std::copy(masters.begin(), masters.end(), published_.begin());
    return std::nullopt;
  }
  const std::span<const uint32_t> changed(indices.get(), *count);
  PublishedDelta delta = {.kind = PublishedDelta::Kind::kUlpDelta,
                          .payload = EncodeUlpDelta(published_, masters, changed)};
  for (const uint32_t i : changed) published_[i] = masters[i];
  if (delta.payload.size() >= FullBytes(masters.size())) return std::nullopt;
  return delta;
}

std::optional<PublishedDelta> DeltaPublisher::CodecDelta(Version version,
                                                         std::span<const float> masters) {
  const auto publish_masters = [&] {
    std::copy(masters.begin(), masters.end(), published_.begin());
    return std::nullopt;
  };
  if (!DifferencesAreFinite(masters) || !DifferencesAreFinite(published_)) {
    return publish_masters();
  }
  // EncodeFeedback encodes residual + values. With residual = -published and values = masters, it
  // encodes masters - published.
  const auto negated = std::make_unique_for_overwrite<float[]>(masters.size());
  const std::span residual(negated.get(), masters.size());
  kernels::Negate(published_, residual);
  // The version alone seeds the random numbers of a codec, so that a replay draws the same numbers.
  const RandomKeys keys = {.shared = version.value, .per_worker = version.value};
  PublishedDelta delta = {.kind = PublishedDelta::Kind::kAdd};
  delta.payload =
      WritePayload(codec_->MaxPayloadBytes(masters.size()), [&](std::span<std::byte> out) {
        return codec_->EncodeFeedback(masters, residual, keys, memory_, out);
      });
  DecodePayloadAdd(EncodedPayload(delta.payload, masters.size()), 1.0f, published_);
  if (!kernels::AllFinite(published_)) return publish_masters();
  return delta;
}

DeltaChain DeltaPublisher::DeltasSince(std::optional<Version> held) {
  std::optional<DeltaChain> chain;
  if (held.has_value()) chain = log_->Since(*held);
  if (!chain.has_value()) return {FullDelta()};
  if (chain->empty()) chain->push_back(log_->Unchanged());
  return *std::move(chain);
}

std::optional<std::vector<float>> DeltaPublisher::PublishedAt(Version earlier) const {
  const std::optional<DeltaChain> chain = log_->Since(earlier);
  if (!chain.has_value()) return std::nullopt;
  std::vector<float> values(published_.begin(), published_.end());
  for (auto delta = chain->rbegin(); delta != chain->rend(); ++delta) Undo(**delta, values);
  return values;
}

PublishedSnapshot DeltaPublisher::Save() const {
  return {.version = version(),
          .publish_count = publish_count_,
          .values = CopyArray(std::as_bytes(std::span(published_)))};
}

absl::Status DeltaPublisher::Restore(const PublishedSnapshot& snapshot, size_t value_count) {
  published_.resize(value_count);
  RETURN_IF_ERROR(
      FillArray("published", snapshot.values, std::as_writable_bytes(std::span(published_))));
  publish_count_ = snapshot.publish_count;
  Restart(snapshot.version);
  return absl::OkStatus();
}

const std::shared_ptr<const PublishedDelta>& DeltaPublisher::FullDelta() {
  if (full_ != nullptr) return full_;
  if (hash_ == 0) hash_ = HashValues(published_);
  const std::unique_ptr<const Codec> fp32 = MakeCodec({.id = CodecId::kFp32}).value();
  full_ = std::make_shared<const PublishedDelta>(PublishedDelta{
      .version = version(),
      .hash = hash_,
      .payload = WritePayload(FullBytes(published_.size()), [&](std::span<std::byte> out) {
        return fp32->Encode(published_, RandomKeys(), out);
      })});
  return full_;
}

}  // namespace thinwire
