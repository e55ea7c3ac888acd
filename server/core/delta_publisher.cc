#include "server/core/delta_publisher.h"

#include <algorithm>
#include <utility>

#include "common/byte_chain.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/value_hash.h"
#include "kernels/add.h"
#include "kernels/differ.h"

namespace thinwire {
namespace {

// Where more than this part of the values changed the whole is little larger, and less work.
constexpr double kSparsePart = 0.95;

size_t WholeBytes(size_t count) { return 1 + count * sizeof(float); }

// The payload that ENCODE(room) writes, of at most MOST_BYTES.
template <typename Encode>
ByteChain Written(size_t most_bytes, const Encode& encode) {
  auto bytes = std::make_shared_for_overwrite<std::byte[]>(most_bytes);
  const size_t length = encode(std::span(bytes.get(), most_bytes));
  return ByteChain({bytes.get(), length}, bytes);
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
  // Whoever needs more bytes than the whole takes the whole.
  log_ = std::make_shared<const VersionLog>(
      version, std::min(options_.log_bytes, WholeBytes(published_.size())));
}

void DeltaPublisher::Publish(Version version, std::span<const float> masters) {
  whole_ = nullptr;
  std::optional<PublishedDelta> delta =
      codec_ == nullptr ? Exactly(masters) : Through(version, masters);
  hash_ = ++step_count_ % kHashEvery == 0 ? HashValues(published_) : 0;
  if (!delta.has_value()) return Restart(version);
  delta->base = this->version();
  delta->version = version;
  delta->hash = hash_;
  auto log = std::make_shared<VersionLog>(*log_);
  log->Append(*std::move(delta));
  log_ = std::move(log);
}

std::optional<PublishedDelta> DeltaPublisher::Exactly(std::span<const float> masters) {
  const auto most = static_cast<size_t>(kSparsePart * static_cast<double>(masters.size()));
  const size_t room = most + kernels::kDifferPadding;
  const auto indices = std::make_unique_for_overwrite<uint32_t[]>(room);
  const auto count = kernels::CollectDifferent(masters, published_, {indices.get(), room});
  if (!count.has_value()) {
    std::ranges::copy(masters, published_.begin());
    return std::nullopt;
  }
  const std::span<const uint32_t> changed(indices.get(), *count);
  PublishedDelta delta = {.kind = PublishedDelta::Kind::kUlpDelta,
                          .payload = EncodeUlpDelta(published_, masters, changed)};
  for (const uint32_t i : changed) published_[i] = masters[i];
  if (delta.payload.size() >= WholeBytes(masters.size())) return std::nullopt;
  return delta;
}

PublishedDelta DeltaPublisher::Through(Version version, std::span<const float> masters) {
  // An encoder with feedback adds what it is given to a residual: here masters to -published.
  const auto negated = std::make_unique_for_overwrite<float[]>(masters.size());
  const std::span residual(negated.get(), masters.size());
  kernels::Negate(published_, residual);
  // The version is all that a random codec draws from: a replay draws the same.
  const RandomKeys keys = {.shared = version.value, .per_worker = version.value};
  PublishedDelta delta = {.kind = PublishedDelta::Kind::kAdd};
  delta.payload = Written(codec_->MaxPayloadBytes(masters.size()), [&](std::span<std::byte> room) {
    return codec_->EncodeFeedback(masters, residual, keys, memory_, room);
  });
  DecodePayloadAdd(EncodedPayload(delta.payload, masters.size()), 1.0f, published_);
  return delta;
}

DeltaChain DeltaPublisher::Answer(std::optional<Version> held) {
  std::optional<DeltaChain> chain;
  if (held.has_value()) chain = log_->Since(*held);
  if (!chain.has_value()) return {Whole()};
  if (!chain->empty()) return *std::move(chain);
  return {
      std::make_shared<const PublishedDelta>(PublishedDelta{.kind = PublishedDelta::Kind::kUlpDelta,
                                                            .base = version(),
                                                            .version = version(),
                                                            .hash = hash_})};
}

const std::shared_ptr<const PublishedDelta>& DeltaPublisher::Whole() {
  if (whole_ != nullptr) return whole_;
  if (hash_ == 0) hash_ = HashValues(published_);
  const std::unique_ptr<const Codec> fp32 = MakeCodec({.id = CodecId::kFp32}).value();
  whole_ = std::make_shared<const PublishedDelta>(PublishedDelta{
      .version = version(),
      .hash = hash_,
      .payload = Written(WholeBytes(published_.size()), [&](std::span<std::byte> room) {
        return fp32->Encode(published_, RandomKeys(), room);
      })});
  return whole_;
}

}  // namespace thinwire
