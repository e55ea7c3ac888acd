#include "server/core/publish/publisher.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

namespace thinwire {
namespace {

ByteChain EncodeWhole(std::span<const float> values, CodecId id, BufferPool& pool) {
  // A dense codec has no settings, so MakeCodec cannot fail.
  const std::unique_ptr<const Codec> codec = MakeCodec({.id = id}).value();
  std::shared_ptr<const BufferPool::Buffer> buffer =
      pool.Take(codec->MaxPayloadBytes(values.size()));
  const size_t length = codec->Encode(values, RandomKeys(), buffer->span());
  return ByteChain(buffer->span().first(length), buffer);
}

}  // namespace

ByteChain Publisher::Encoded(Version version, std::span<const float> masters, CodecId codec) {
  if (version != version_) {
    encoded_.clear();
    version_ = version;
  }
  auto found = encoded_.find(codec);
  if (found == encoded_.end())
    found = encoded_.emplace(codec, EncodeWhole(masters, codec, pool_)).first;
  return found->second;
}

}  // namespace thinwire
