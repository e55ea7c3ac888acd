#include "proto/grpc_bytes.h"

#include <grpcpp/support/slice.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace thinwire {
namespace {

// A piece with fewer bytes than this limit is copied, because creating a gRPC slice for it would
// take longer.
constexpr size_t kSmallPieceBytes = 2048;

using Owner = std::shared_ptr<const void>;

grpc::Slice Shared(const ByteChain::Piece& piece) {
  // gRPC requires a non-const pointer but never writes to a slice that it did not allocate.
  void* bytes = const_cast<std::byte*>(piece.bytes.data());
  return grpc::Slice(
      bytes, piece.bytes.size(), [](void* owner) { delete static_cast<Owner*>(owner); },
      new Owner(piece.owner));
}

}  // namespace

ByteChain FromByteBuffer(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  ByteChain chain;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return chain;
  for (grpc::Slice& slice : slices) {
    // A short slice stores its bytes inside the slice object, so begin() must be called after the
    // slice has been moved to its final place.
    auto kept = std::make_shared<const grpc::Slice>(std::move(slice));
    const auto* bytes = reinterpret_cast<const std::byte*>(kept->begin());
    chain.Append({bytes, kept->size()}, kept);
  }
  return chain;
}

grpc::ByteBuffer ToByteBuffer(const ByteChain& chain) {
  std::vector<grpc::Slice> slices;
  std::string small;
  const auto flush = [&] {
    if (small.empty()) return;
    slices.emplace_back(small);
    small.clear();
  };
  for (const ByteChain::Piece& piece : chain.pieces()) {
    if (piece.owner == nullptr || piece.bytes.size() < kSmallPieceBytes) {
      small.append(reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size());
    } else {
      flush();
      slices.push_back(Shared(piece));
    }
  }
  flush();
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace thinwire
