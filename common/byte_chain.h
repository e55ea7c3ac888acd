// ByteChain: bytes that lie in several pieces, each kept alive by whoever owns its memory.
//
// A payload arrives as slices of at most 64 KiB that a value may straddle, and leaves as a small
// header and a large body from elsewhere. A chain lets both stay where they are: copying a chain
// copies pointers, never bytes.
//
// Not thread-safe; the bytes themselves are immutable, so copies of a chain may be used on
// different threads.
#ifndef THINWIRE_COMMON_BYTE_CHAIN_H_
#define THINWIRE_COMMON_BYTE_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace thinwire {

class ByteChain {
 public:
  struct Piece {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;  // null: whoever made the piece keeps the bytes alive
  };

  ByteChain() = default;
  // A chain that owns BYTES.
  explicit ByteChain(std::vector<std::byte> bytes);
  // A chain over bytes that OWNER keeps alive.
  ByteChain(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const Piece> pieces() const { return pieces_; }

  // Adds bytes or a chain at the end; empty ones leave no piece.
  void Append(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  void Append(const ByteChain& other);

  // The LENGTH bytes from OFFSET, shared. REQUIRES: offset + length <= size().
  ByteChain Sub(size_t offset, size_t length) const;

  // The byte at OFFSET. REQUIRES: offset < size().
  std::byte At(size_t offset) const;

  // Copies size() bytes to TO. REQUIRES: to.size() == size().
  void CopyTo(std::span<std::byte> to) const;
  std::vector<std::byte> ToVector() const;

  // All bytes in one span: the piece itself if there is only one, else copied into SCRATCH. The
  // span lives as long as both the chain and SCRATCH.
  std::span<const std::byte> Contiguous(std::vector<std::byte>& scratch) const;

  // Keeps OWNER alive for as long as any of this chain's pieces, and those cut from them later.
  void Hold(std::shared_ptr<const void> owner);

  // Equal bytes, however they are cut.
  friend bool operator==(const ByteChain& a, const ByteChain& b);

 private:
  absl::InlinedVector<Piece, 2> pieces_;
  size_t size_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_BYTE_CHAIN_H_
