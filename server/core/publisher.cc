#include "server/core/publisher.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

namespace thinwire {
namespace {

ByteChain EncodeWhole(std::span<const float> values, CodecId id) {
  // A dense codec has nothing to set, so making one never fails.
  const std::unique_ptr<const Codec> codec = MakeCodec({.id = id}).value();
  const size_t room = codec->MaxPayloadBytes(values.size());
  // Not a vector: a megabyte that is about to be written need not be zeroed.
  auto bytes = std::make_shared_for_overwrite<std::byte[]>(room);
  const size_t length = codec->Encode(values, Turn(), {bytes.get(), room});
  return ByteChain({bytes.get(), length}, bytes);
}

}  // namespace

ByteChain Publisher::Encoded(Version version, std::span<const float> masters, CodecId codec) {
  if (version != version_) {
    encoded_.clear();
    version_ = version;
  }
  auto found = encoded_.find(codec);
  if (found == encoded_.end()) found = encoded_.emplace(codec, EncodeWhole(masters, codec)).first;
  return found->second;
}

}  // namespace thinwire
