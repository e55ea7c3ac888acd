// ByteChain: immutable bytes in several pieces of memory. Copying a chain copies pointers, never
// bytes.
//
// A received payload consists of slices of at most 64 KiB, and a value may straddle two slices. A
// sent payload consists of a small header and a large body in another buffer. A chain represents
// both without a copy.
//
// A chain is not thread-safe. Copies of a chain may be used on different threads.
#ifndef THINWIRE_COMMON_MEMORY_BYTE_CHAIN_H_
#define THINWIRE_COMMON_MEMORY_BYTE_CHAIN_H_

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
    std::shared_ptr<const void> owner;  // keeps the bytes alive; null: the caller keeps them alive
  };

  ByteChain() = default;
  // Creates a chain of one piece, which owns BYTES.
  explicit ByteChain(std::vector<std::byte> bytes);
  // Creates a chain that refers to BYTES without a copy. The chain keeps OWNER alive, and OWNER
  // keeps BYTES alive.
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

  // Copies all bytes of the chain to the array TO. REQUIRES: to.size() == size().
  void CopyTo(std::span<std::byte> to) const;
  std::vector<std::byte> ToVector() const;

  // Returns all bytes of the chain as one span. A chain of one piece returns that piece; any other
  // chain copies its bytes to SCRATCH. The span is valid until the chain or SCRATCH changes or is
  // destroyed.
  std::span<const std::byte> Contiguous(std::vector<std::byte>& scratch) const;

  // Makes every piece of this chain a shared owner of OWNER. Pieces of chains that Sub returns
  // later also keep OWNER alive.
  void Hold(std::shared_ptr<const void> owner);

  // Compares the bytes. Equal chains may be divided into different pieces.
  friend bool operator==(const ByteChain& a, const ByteChain& b);

 private:
  absl::InlinedVector<Piece, 2> pieces_;
  size_t size_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MEMORY_BYTE_CHAIN_H_
