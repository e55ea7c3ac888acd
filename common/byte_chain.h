// ByteChain: immutable bytes in several pieces of memory. Copying a chain copies pointers, never
// bytes.
//
// A received payload consists of slices of at most 64 KiB, and a value may straddle two slices. A
// sent payload consists of a small header and a large body in another buffer. A chain represents
// both without a copy.
//
// A chain is not thread-safe. Copies of a chain may be used on different threads.
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
    std::shared_ptr<const void> owner;  // keeps the bytes alive; null: their creator does
  };

  ByteChain() = default;
  // Takes ownership of BYTES.
  explicit ByteChain(std::vector<std::byte> bytes);
  // Refers to BYTES without a copy. OWNER keeps them alive.
  ByteChain(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const Piece> pieces() const { return pieces_; }

  // Appends bytes or a chain. Empty bytes add no piece.
  void Append(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  void Append(const ByteChain& other);

  // Returns the LENGTH bytes from OFFSET on, without a copy. REQUIRES: offset + length <= size().
  ByteChain Sub(size_t offset, size_t length) const;

  // Returns the byte at OFFSET. REQUIRES: offset < size().
  std::byte At(size_t offset) const;

  // Copies size() bytes to TO. REQUIRES: to.size() == size().
  void CopyTo(std::span<std::byte> to) const;
  std::vector<std::byte> ToVector() const;

  // Returns all bytes in one span: the bytes of the piece if there is only one, otherwise a copy in
  // SCRATCH. The span is valid until the chain or SCRATCH changes or is destroyed.
  std::span<const std::byte> Contiguous(std::vector<std::byte>& scratch) const;

  // Keeps OWNER alive as long as any piece of this chain, or of a chain that Sub returns later,
  // exists.
  void Hold(std::shared_ptr<const void> owner);

  // Compares the bytes. Equal chains may be divided into different pieces.
  friend bool operator==(const ByteChain& a, const ByteChain& b);

 private:
  absl::InlinedVector<Piece, 2> pieces_;
  size_t size_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_BYTE_CHAIN_H_
