// Moves: what changed of an array, exactly, in fewer bytes than the new values.
//
// Floats have numbers in the order of their values (kernels/float_order.h), and a value that an
// update changed a little moved by far fewer of them than there are. With the old value at hand the
// move is all there is to know of the new one:
//
//   number(v) = bits(v) if the sign is clear, else bits(v) xor 0x7FFFFFFF, as a 32-bit integer
//   move      = number(new) - number(old), modulo 2^32
//
//   payload   = k (4) | order (1) | k indices (elias_fano of index_code.h) | codes
//   code      = exponential Golomb of 2 |move| - 1 - (move < 0), from the lowest bit of each byte:
//               with q = that + 2^order and w its bits, w - 1 - order zeros, a one, then the w - 1
//               low bits of q; the last byte is filled with zeros
//
// The order is the one that suits the moves at hand. In training some 23 to 28 bits a value, where
// fp32 takes 32 (docs/deltas.md). (Golomb 1966; Teuhola 1978.)
//
// Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_MOVES_H_
#define THINWIRE_COMMON_CODEC_MOVES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/byte_chain.h"

namespace thinwire {

// The payload that moves FROM to TO at INDICES. REQUIRES: from.size() == to.size() < 2^32; INDICES
// rise and are below it; the bits of the two differ at each of them.
ByteChain EncodeMoves(std::span<const float> from, std::span<const float> to,
                      std::span<const uint32_t> indices);

// Whether PAYLOAD is one of an array of COUNT values. Allocates nothing that grows with a number
// read from it. Errors: InvalidArgument that says what was wanted and what came.
absl::Status CheckMoves(const ByteChain& payload, size_t count);

// How many values PAYLOAD moves. REQUIRES: CheckMoves passed.
size_t MoveCount(const ByteChain& payload);

// Calls block(indices, moves) for all of them, indices rising, some at a time; a value's number
// grows by its move, modulo 2^32. They live until the call returns. REQUIRES: CheckMoves(payload,
// count) passed.
using MovesFunction =
    absl::FunctionRef<void(std::span<const uint32_t> indices, std::span<const uint32_t> moves)>;
void ForEachMove(const ByteChain& payload, size_t count, MovesFunction block);

// Moves VALUES. REQUIRES: CheckMoves(payload, values.size()) passed.
void ApplyMoves(const ByteChain& payload, std::span<float> values);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_MOVES_H_
