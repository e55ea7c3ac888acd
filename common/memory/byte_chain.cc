#include "common/memory/byte_chain.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace thinwire {

ByteChain::ByteChain(std::vector<std::byte> bytes) {
  auto owned = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  Append(*owned, owned);
}

ByteChain::ByteChain(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  Append(bytes, std::move(owner));
}

void ByteChain::Append(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.empty()) return;
  size_ += bytes.size();
  pieces_.push_back({bytes, std::move(owner)});
}

void ByteChain::Append(const ByteChain& other) {
  pieces_.insert(pieces_.end(), other.pieces_.begin(), other.pieces_.end());
  size_ += other.size_;
}

ByteChain ByteChain::Sub(size_t offset, size_t length) const {
  ByteChain sub;
  for (const Piece& piece : pieces_) {
    if (length == 0) break;
    if (offset >= piece.bytes.size()) {
      offset -= piece.bytes.size();
      continue;
    }
    const size_t part = std::min(length, piece.bytes.size() - offset);
    sub.Append(piece.bytes.subspan(offset, part), piece.owner);
    offset = 0;
    length -= part;
  }
  return sub;
}

std::byte ByteChain::At(size_t offset) const {
  for (const Piece& piece : pieces_) {
    if (offset < piece.bytes.size()) return piece.bytes[offset];
    offset -= piece.bytes.size();
  }
  return std::byte{0};
}

void ByteChain::CopyTo(std::span<std::byte> to) const {
  std::byte* next = to.data();
  for (const Piece& piece : pieces_) {
    std::memcpy(next, piece.bytes.data(), piece.bytes.size());
    next += piece.bytes.size();
  }
}

std::vector<std::byte> ByteChain::ToVector() const {
  std::vector<std::byte> all(size_);
  CopyTo(all);
  return all;
}

std::span<const std::byte> ByteChain::Contiguous(std::vector<std::byte>& scratch) const {
  if (pieces_.empty()) return {};
  if (pieces_.size() == 1) return pieces_[0].bytes;
  scratch.resize(size_);
  CopyTo(scratch);
  return scratch;
}

void ByteChain::Hold(std::shared_ptr<const void> owner) {
  for (Piece& piece : pieces_) {
    using Both = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
    piece.owner = std::make_shared<const Both>(std::move(piece.owner), owner);
  }
}

bool operator==(const ByteChain& a, const ByteChain& b) {
  if (a.size() != b.size()) return false;
  std::vector<std::byte> scratch_a, scratch_b;
  return std::ranges::equal(a.Contiguous(scratch_a), b.Contiguous(scratch_b));
}

}  // namespace thinwire
