// Splits the codes of a payload, which have a fixed size and lie in a ByteChain, into runs. All
// codes of a run lie in one piece of memory.
#ifndef THINWIRE_COMMON_CODEC_FAMILY_CODE_RUNS_H_
#define THINWIRE_COMMON_CODEC_FAMILY_CODE_RUNS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "common/memory/byte_chain.h"

namespace thinwire {

// Splits the COUNT codes of CODE_BYTES bytes each, which begin at byte OFFSET of CHAIN, into runs
// and calls run(codes, first, n) for each run in order. `codes` points to the n codes of the run,
// and `first` is the index of its first code. A code that straddles two pieces is copied and forms
// a run of its own. REQUIRES: 1 <= code_bytes <= 8; offset + count * code_bytes <= chain.size().
template <typename Run>
void ForEachCodeRun(const ByteChain& chain, size_t offset, size_t code_bytes, size_t count,
                    const Run& run) {
  std::array<std::byte, 8> straddler;
  size_t gathered = 0;  // number of bytes copied to `straddler`
  size_t first = 0;
  for (const ByteChain::Piece& piece : chain.pieces()) {
    std::span<const std::byte> bytes = piece.bytes;
    const size_t skipped = std::min(offset, bytes.size());
    offset -= skipped;
    bytes = bytes.subspan(skipped);
    if (gathered > 0) {
      const size_t added = std::min(code_bytes - gathered, bytes.size());
      std::memcpy(straddler.data() + gathered, bytes.data(), added);
      gathered += added;
      bytes = bytes.subspan(added);
      if (gathered < code_bytes) continue;
      run(straddler.data(), first, size_t{1});
      ++first;
      gathered = 0;
    }
    const size_t whole = std::min(bytes.size() / code_bytes, count - first);
    if (whole > 0) run(bytes.data(), first, whole);
    first += whole;
    if (first == count) return;
    gathered = bytes.size() - whole * code_bytes;
    std::memcpy(straddler.data(), bytes.data() + whole * code_bytes, gathered);
  }
}

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_FAMILY_CODE_RUNS_H_
