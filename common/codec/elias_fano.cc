#include "common/codec/elias_fano.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);

int LowBits(size_t count, size_t universe) {
  return count == 0 ? 0 : std::bit_width(universe / count) - 1;
}

size_t LowBytes(size_t count, size_t universe) {
  return (count * LowBits(count, universe) + 7) / 8;
}

size_t UpperBytes(size_t count, size_t universe) {
  if (count == 0) return 0;
  return (count + ((universe - 1) >> LowBits(count, universe)) + 1 + 7) / 8;
}

// Whether the bits of the low part's last byte that belong to no index are 0.
bool LowPaddingIsZero(std::span<const std::byte> code, size_t count, size_t universe) {
  const size_t bits = count * LowBits(count, universe);
  if (bits % 8 == 0) return true;
  return std::to_integer<int>(code[bits / 8]) >> (bits % 8) == 0;
}

// The 8 bytes from BYTE, those beyond the end being 0.
uint64_t WordAt(std::span<const std::byte> bytes, size_t byte) {
  uint64_t word = 0;
  if (byte + kWordBytes <= bytes.size()) {
    std::memcpy(&word, bytes.data() + byte, kWordBytes);
  } else if (byte < bytes.size()) {
    std::memcpy(&word, bytes.data() + byte, bytes.size() - byte);
  }
  return word;
}

absl::Status NotRising(size_t number, uint32_t before, uint32_t index) {
  return absl::InvalidArgumentError(
      absl::StrCat("index ", number, ": want above ", before, ", got ", index));
}

}  // namespace

size_t EliasFanoBytes(size_t count, size_t universe) {
  return LowBytes(count, universe) + UpperBytes(count, universe);
}

void EncodeEliasFano(std::span<const uint32_t> indices, size_t universe, std::byte* out) {
  const int low_bits = LowBits(indices.size(), universe);
  const size_t low_bytes = LowBytes(indices.size(), universe);
  const uint32_t low_mask = (uint32_t{1} << low_bits) - 1;
  std::fill_n(out, EliasFanoBytes(indices.size(), universe), std::byte{0});
  std::byte* const upper = out + low_bytes;
  uint64_t pending = 0;  // low bits that do not yet fill a byte
  int pending_bits = 0;
  std::byte* low = out;
  for (size_t i = 0; i < indices.size(); ++i) {
    pending |= uint64_t{indices[i] & low_mask} << pending_bits;
    for (pending_bits += low_bits; pending_bits >= 8; pending_bits -= 8) {
      *low++ = static_cast<std::byte>(pending);
      pending >>= 8;
    }
    const size_t bit = (indices[i] >> low_bits) + i;
    upper[bit / 8] |= std::byte{1} << (bit % 8);
  }
  if (pending_bits > 0) *low = static_cast<std::byte>(pending);
}

EliasFanoReader::EliasFanoReader(std::span<const std::byte> code, size_t count, size_t universe)
    : low_bits_(LowBits(count, universe)),
      low_(code.first(LowBytes(count, universe))),
      upper_(code.subspan(LowBytes(count, universe))),
      word_(WordAt(upper_, 0)) {}

bool EliasFanoReader::FindBit() {
  while (word_ == 0) {
    upper_byte_ += kWordBytes;
    if (upper_byte_ >= upper_.size()) return false;
    word_ = WordAt(upper_, upper_byte_);
  }
  return true;
}

bool EliasFanoReader::MoreBits() { return FindBit(); }

size_t EliasFanoReader::Next(std::span<uint32_t> out) {
  const auto low_bits = static_cast<size_t>(low_bits_);
  const uint64_t low_mask = (uint64_t{1} << low_bits) - 1;
  const size_t before = next_;
  size_t low_bit = before * low_bits;
  size_t filled = 0;
  while (filled < out.size() && FindBit()) {
    // The set bits of one word, in registers. The number-th of all set bits is not below number.
    uint64_t word = word_;
    for (; word != 0 && filled < out.size(); word &= word - 1, ++filled, low_bit += low_bits) {
      const size_t bit = upper_byte_ * 8 + static_cast<size_t>(std::countr_zero(word));
      const uint64_t low = (WordAt(low_, low_bit / 8) >> (low_bit % 8)) & low_mask;
      // A hostile one may stand for more than 32 bits.
      const uint64_t index = (uint64_t{bit - (before + filled)} << low_bits) | low;
      out[filled] = static_cast<uint32_t>(std::min<uint64_t>(index, UINT32_MAX));
    }
    word_ = word;
  }
  next_ = before + filled;
  return filled;
}

absl::Status CheckEliasFano(std::span<const std::byte> code, size_t count, size_t universe) {
  const size_t want = EliasFanoBytes(count, universe);
  if (code.size() != want) {
    return absl::InvalidArgumentError(absl::StrCat(count, " indices below ", universe, ": want ",
                                                   want, " bytes, got ", code.size()));
  }
  if (!LowPaddingIsZero(code, count, universe)) {
    return absl::InvalidArgumentError("indices: want zeros behind the low bits");
  }
  EliasFanoReader reader(code, count, universe);
  std::array<uint32_t, 256> block;
  uint32_t before = 0;
  for (size_t first = 0; first < count; first += block.size()) {
    const std::span<uint32_t> asked = std::span(block).first(std::min(block.size(), count - first));
    const size_t got = reader.Next(asked);
    for (size_t i = 0; i < got; ++i) {
      if (asked[i] >= universe) {
        return absl::InvalidArgumentError(
            absl::StrCat("index ", first + i, ": want below ", universe, ", got ", asked[i]));
      }
      if (first + i > 0 && asked[i] <= before) return NotRising(first + i, before, asked[i]);
      before = asked[i];
    }
    if (got < asked.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("indices: want ", count, ", got ", first + got));
    }
  }
  if (reader.MoreBits()) {
    return absl::InvalidArgumentError(absl::StrCat("indices: want ", count, ", got more"));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
