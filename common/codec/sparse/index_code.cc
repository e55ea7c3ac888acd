#include "common/codec/sparse/index_code.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);

int LowBits(IndexCoder coder, size_t count, size_t universe) {
  if (count == 0) return 0;
  if (coder == IndexCoder::kEliasFano) return std::bit_width(universe / count) - 1;
  // For gaps with a geometric distribution of mean m, the best parameter of a Golomb code is about
  // 0.481 m (Kiely 2004). A Rice code requires a power of two, so the parameter is rounded up.
  const size_t least = universe * 481 / (count * 1000);
  return least <= 1 ? 0 : std::bit_width(least - 1);
}

size_t LowBytes(IndexCoder coder, size_t count, size_t universe) {
  return (count * static_cast<size_t>(LowBits(coder, count, universe)) + 7) / 8;
}

size_t MaxUpperBytes(IndexCoder coder, size_t count, size_t universe) {
  if (count == 0) return 0;
  const int low_bits = LowBits(coder, count, universe);
  if (coder == IndexCoder::kGolombRice) return (count + ((universe - count) >> low_bits) + 7) / 8;
  return (count + ((universe - 1) >> low_bits) + 1 + 7) / 8;
}

// Returns whether zeros fill the last byte of the low part of CODE, which has LOW_BITS bits.
bool LowPaddingIsZero(std::span<const std::byte> code, size_t low_bits) {
  if (low_bits % 8 == 0) return true;
  return std::to_integer<int>(code[low_bits / 8]) >> (low_bits % 8) == 0;
}

// Returns the 8 bytes of BYTES from offset BYTE on, as an integer. Bytes beyond the end of BYTES
// count as 0.
uint64_t WordAt(std::span<const std::byte> bytes, size_t byte) {
  uint64_t word = 0;
  if (byte + kWordBytes <= bytes.size()) {
    std::memcpy(&word, bytes.data() + byte, kWordBytes);
  } else if (byte < bytes.size()) {
    std::memcpy(&word, bytes.data() + byte, bytes.size() - byte);
  }
  return word;
}

// Writes the low BITS bits of each number that is passed to Put(), without gaps between the
// numbers. Writes to memory in words of 8 bytes. Not thread-safe.
class LowWriter {
 public:
  LowWriter(int bits, std::byte* out)
      : bits_(static_cast<unsigned>(bits)), mask_((uint64_t{1} << bits) - 1), out_(out) {}

  void Put(uint32_t number) {
    const uint64_t low = number & mask_;
    word_ |= low << used_;
    used_ += bits_;
    if (used_ < 64) return;
    std::memcpy(out_, &word_, kWordBytes);
    out_ += kWordBytes;
    used_ -= 64;
    word_ = low >> (bits_ - used_);
  }
  void Finish() {
    const uint64_t word = word_;
    std::memcpy(out_, &word, (used_ + 7) / 8);
  }

 private:
  const unsigned bits_;
  const uint64_t mask_;
  std::byte* out_;
  uint64_t word_ = 0;
  unsigned used_ = 0;  // the number of bits used in word_, below 64
};

// Sets single bits of BYTES, in ascending order of their positions; all other bits become 0. Not
// thread-safe.
class BitWriter {
 public:
  explicit BitWriter(std::span<std::byte> bytes) : bytes_(bytes) {
    std::ranges::fill(bytes, std::byte{0});
  }

  void Set(size_t bit) {
    const size_t at = bit / 64 * kWordBytes;
    if (at != at_) {
      std::memcpy(bytes_.data() + at_, &word_, kWordBytes);  // in bounds: BIT is in a later word
      at_ = at;
      word_ = 0;
    }
    word_ |= uint64_t{1} << (bit % 64);
  }
  void Finish() {
    const uint64_t word = word_;
    std::memcpy(bytes_.data() + at_, &word, std::min(kWordBytes, bytes_.size() - at_));
  }

 private:
  const std::span<std::byte> bytes_;
  size_t at_ = 0;  // the byte offset of word_ in bytes_
  uint64_t word_ = 0;
};

// Writes the code of INDICES to OUT and returns its length in bytes.
template <IndexCoder kCoder>
size_t EncodeWith(std::span<const uint32_t> indices, size_t universe, std::byte* out) {
  if (indices.empty()) return 0;
  const size_t most = MaxIndexBytes(kCoder, indices.size(), universe);
  const int low_bits = LowBits(kCoder, indices.size(), universe);
  const size_t low_bytes = LowBytes(kCoder, indices.size(), universe);
  LowWriter low(low_bits, out);
  BitWriter upper({out + low_bytes, most - low_bytes});
  size_t bit = 0;
  uint32_t smallest = 0;  // the smallest possible next index
  for (size_t i = 0; i < indices.size(); ++i) {
    uint32_t number = indices[i];
    if constexpr (kCoder == IndexCoder::kGolombRice) {
      number -= smallest;
      smallest = indices[i] + 1;
      bit += (number >> low_bits) + (i > 0 ? 1 : 0);
    } else {
      bit = (number >> low_bits) + i;
    }
    low.Put(number);
    upper.Set(bit);
  }
  low.Finish();
  upper.Finish();
  return kCoder == IndexCoder::kGolombRice ? low_bytes + bit / 8 + 1 : most;
}

absl::Status WrongLength(size_t count, size_t universe, absl::string_view expected, size_t got) {
  return absl::InvalidArgumentError(absl::StrCat(count, " indices below ", universe,
                                                 ": wrong length (expected ", expected,
                                                 " bytes, got ", got, ")"));
}

absl::Status CheckLength(IndexCoder coder, size_t bytes, size_t count, size_t universe) {
  const size_t most = MaxIndexBytes(coder, count, universe);
  if (coder == IndexCoder::kEliasFano) {
    return bytes == most ? absl::OkStatus()
                         : WrongLength(count, universe, absl::StrCat(most), bytes);
  }
  const size_t least = LowBytes(coder, count, universe) + (count + 7) / 8;
  if (bytes >= least && bytes <= most) return absl::OkStatus();
  return WrongLength(count, universe, absl::StrCat(least, " to ", most), bytes);
}

absl::Status CheckAscending(IndexReader& reader, size_t count, size_t universe) {
  std::array<uint32_t, 256> block;
  uint32_t before = 0;
  for (size_t first = 0; first < count; first += block.size()) {
    const size_t wanted = std::min(block.size(), count - first);
    const size_t got = reader.Next(std::span(block).first(wanted));
    for (size_t i = 0; i < got; ++i) {
      if (block[i] >= universe) {
        return absl::InvalidArgumentError(absl::StrCat("index ", first + i,
                                                       ": too large (expected below ", universe,
                                                       ", got ", block[i], ")"));
      }
      if (first + i > 0 && block[i] <= before) {
        return absl::InvalidArgumentError(absl::StrCat("index ", first + i,
                                                       ": not ascending (expected above ", before,
                                                       ", got ", block[i], ")"));
      }
      before = block[i];
    }
    if (got < wanted) {
      return absl::InvalidArgumentError(
          absl::StrCat("indices: too few (expected ", count, ", got ", first + got, ")"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

size_t MaxIndexBytes(IndexCoder coder, size_t count, size_t universe) {
  return LowBytes(coder, count, universe) + MaxUpperBytes(coder, count, universe);
}

size_t EncodeIndices(IndexCoder coder, std::span<const uint32_t> indices, size_t universe,
                     std::byte* out) {
  return coder == IndexCoder::kEliasFano
             ? EncodeWith<IndexCoder::kEliasFano>(indices, universe, out)
             : EncodeWith<IndexCoder::kGolombRice>(indices, universe, out);
}

IndexReader::IndexReader(IndexCoder coder, std::span<const std::byte> code, size_t count,
                         size_t universe)
    : coder_(coder),
      low_bits_(LowBits(coder, count, universe)),
      code_(code),
      upper_(code.subspan(LowBytes(coder, count, universe))),
      word_(WordAt(upper_, 0)) {}

bool IndexReader::FindBit() {
  while (word_ == 0) {
    upper_byte_ += kWordBytes;
    if (upper_byte_ >= upper_.size()) return false;
    word_ = WordAt(upper_, upper_byte_);
  }
  return true;
}

bool IndexReader::MoreBits() { return FindBit(); }

size_t IndexReader::Next(std::span<uint32_t> out) {
  // low_at reads 8 bytes from a byte of the code's low part on. If the upper part, which follows
  // the low part, has at least 8 bytes, this read does not exceed the code. Otherwise,
  // checked_low_at is used.
  const auto low_at = [&](size_t bit) {
    uint64_t word;
    std::memcpy(&word, code_.data() + bit / 8, kWordBytes);
    return word >> (bit % 8);
  };
  const auto checked_low_at = [&](size_t bit) { return WordAt(code_, bit / 8) >> (bit % 8); };
  const bool elias_fano = coder_ == IndexCoder::kEliasFano;
  if (upper_.size() < kWordBytes) {
    return elias_fano ? NextOf<IndexCoder::kEliasFano>(out, checked_low_at)
                      : NextOf<IndexCoder::kGolombRice>(out, checked_low_at);
  }
  return elias_fano ? NextOf<IndexCoder::kEliasFano>(out, low_at)
                    : NextOf<IndexCoder::kGolombRice>(out, low_at);
}

template <IndexCoder kCoder, typename LowAt>
size_t IndexReader::NextOf(std::span<uint32_t> out, const LowAt& low_at) {
  const bool gaps = kCoder == IndexCoder::kGolombRice;
  const auto low_bits = static_cast<size_t>(low_bits_);
  const uint64_t low_mask = (uint64_t{1} << low_bits) - 1;
  size_t low_bit = next_ * low_bits;
  size_t after_last = after_last_;
  uint64_t least = least_;
  size_t filled = 0;
  while (filled < out.size() && FindBit()) {
    // Each set bit of the code's upper part gives one index. Local copies of the members allow the
    // compiler to keep them in registers.
    uint64_t word = word_;
    const size_t first_bit = upper_byte_ * 8;
    for (; word != 0 && filled < out.size(); word &= word - 1, ++filled, low_bit += low_bits) {
      const size_t bit = first_bit + static_cast<size_t>(std::countr_zero(word));
      // UPPER is never negative. With elias_fano, the set bit of index i is at position i or above.
      // With golomb_rice, each set bit is at position `after_last` or above.
      const uint64_t upper = bit - (gaps ? after_last : next_ + filled);
      after_last = bit + 1;
      // A malformed payload can decode to an index of more than 32 bits, which is limited to
      // 2^32 - 1.
      const uint64_t number = upper << low_bits | (low_at(low_bit) & low_mask);
      const uint64_t index = std::min<uint64_t>(gaps ? least + number : number, UINT32_MAX);
      out[filled] = static_cast<uint32_t>(index);
      least = index + 1;
    }
    word_ = word;
  }
  after_last_ = after_last;
  least_ = least;
  next_ += filled;
  return filled;
}

absl::Status CheckIndices(IndexCoder coder, std::span<const std::byte> code, size_t count,
                          size_t universe) {
  RETURN_IF_ERROR(CheckLength(coder, code.size(), count, universe));
  if (!LowPaddingIsZero(code, count * static_cast<size_t>(LowBits(coder, count, universe)))) {
    return absl::InvalidArgumentError("indices: nonzero padding after the low bits");
  }
  IndexReader reader(coder, code, count, universe);
  RETURN_IF_ERROR(CheckAscending(reader, count, universe));
  if (reader.MoreBits()) {
    return absl::InvalidArgumentError(absl::StrCat("indices: too many (expected ", count, ")"));
  }
  if (coder == IndexCoder::kGolombRice && count > 0 && !reader.AtLastByte()) {
    return absl::InvalidArgumentError("indices: bytes after the last bit");
  }
  return absl::OkStatus();
}

}  // namespace thinwire
