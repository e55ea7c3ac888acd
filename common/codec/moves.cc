#include "common/codec/moves.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/codec/index_code.h"
#include "kernels/float_order.h"

namespace thinwire {
namespace {

constexpr IndexCoder kCoder = IndexCoder::kEliasFano;
constexpr size_t kHeadBytes = sizeof(uint32_t) + 1;
constexpr int kLargestOrder = 31;
// Of the numbers that are coded, 0 to 2^32 - 2, each with 2^order added.
constexpr int kMostBits = 33;

// Small for a move by few numbers, either way. REQUIRES: the move is not 0.
uint32_t Coded(float from, float to) {
  const auto move = static_cast<int32_t>(kernels::NumberOfFloat(to) - kernels::NumberOfFloat(from));
  return ((static_cast<uint32_t>(move) << 1) ^ static_cast<uint32_t>(move >> 31)) - 1;
}

// What Coded made a number of.
uint32_t MoveOf(uint32_t coded) {
  const uint32_t zigzag = coded + 1;
  return (zigzag >> 1) ^ (0 - (zigzag & 1));
}

// The bits of a code.
int CodeBits(uint32_t coded, int order) {
  return 2 * std::bit_width(coded + (uint64_t{1} << order)) - 1 - order;
}

struct Choice {
  int order;
  size_t bits;
};

// The order with the fewest bits for all, to within what rounding the numbers down to powers of two
// does.
Choice ChooseOrder(std::span<const uint32_t> coded) {
  std::array<size_t, kMostBits> widths{};
  for (const uint32_t number : coded) ++widths[std::bit_width(number)];
  const auto about = [&](int order) {
    size_t bits = 0;
    for (int width = 0; width < kMostBits; ++width) {
      bits += widths[width] * CodeBits(static_cast<uint32_t>((uint64_t{1} << width) >> 1), order);
    }
    return bits;
  };
  int best = 0;
  for (int order = 1; order <= kLargestOrder; ++order) {
    if (about(order) < about(best)) best = order;
  }
  size_t bits = 0;
  for (const uint32_t number : coded) bits += CodeBits(number, best);
  return {best, bits};
}

// Not thread-safe.
class BitWriter {
 public:
  explicit BitWriter(std::byte* out) : out_(out) {}

  // REQUIRES: BITS < 2^COUNT, COUNT <= 33.
  void Put(uint64_t bits, int count) {
    word_ |= bits << count_;
    count_ += count;
    while (count_ >= 32) PutBytes(4);
    // At most 31 are left, and 33 fit on top of them.
  }
  void Finish() { PutBytes((count_ + 7) / 8); }

 private:
  void PutBytes(int bytes) {
    std::memcpy(out_, &word_, bytes);
    out_ += bytes;
    word_ >>= 8 * bytes;
    count_ = std::max(0, count_ - 8 * bytes);
  }

  std::byte* out_;
  uint64_t word_ = 0;
  int count_ = 0;
};

// Never reads beyond its bytes. Not thread-safe.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // The next number of ORDER; nothing at the end of the bits, or where no writer would have put
  // such bits.
  std::optional<uint32_t> Next(int order) {
    Fill();
    const int zeros = std::countr_zero(word_);
    const int low_bits = zeros + order;
    if (zeros >= count_ || low_bits >= kMostBits) return std::nullopt;
    Drop(zeros + 1);
    Fill();
    if (low_bits > count_) return std::nullopt;
    const uint64_t one = uint64_t{1} << low_bits;
    const uint64_t number = (one | (word_ & (one - 1))) - (uint64_t{1} << order);
    Drop(low_bits);
    if (number >= UINT32_MAX) return std::nullopt;
    return static_cast<uint32_t>(number);
  }

  // Whether nothing is left but the zeros that fill the last byte.
  bool AtEnd() const { return next_ == bytes_.size() && count_ < 8 && word_ == 0; }

 private:
  // At least 56 bits, if so many are left.
  void Fill() {
    if (next_ + sizeof(word_) <= bytes_.size()) {
      uint64_t more;
      std::memcpy(&more, bytes_.data() + next_, sizeof(more));
      const int taken = (63 - count_) / 8;
      word_ |= (more & LowBits(8 * taken)) << count_;
      next_ += taken;
      count_ += 8 * taken;
      return;
    }
    for (; count_ <= 56 && next_ < bytes_.size(); ++next_, count_ += 8) {
      word_ |= std::to_integer<uint64_t>(bytes_[next_]) << count_;
    }
  }
  // REQUIRES: count < 64.
  static uint64_t LowBits(int count) { return (uint64_t{1} << count) - 1; }
  void Drop(int count) {
    word_ >>= count;
    count_ -= count;
  }

  const std::span<const std::byte> bytes_;
  size_t next_ = 0;    // the first byte that is not in word_
  uint64_t word_ = 0;  // zeros above count_
  int count_ = 0;
};

// A payload in one span, cut in its parts. REQUIRES: it has the head's bytes.
struct Parts {
  Parts(const ByteChain& payload, size_t count) : bytes(payload.Contiguous(scratch)) {
    std::memcpy(&entry_count, bytes.data(), sizeof(entry_count));
    order = std::to_integer<int>(bytes[sizeof(entry_count)]);
    index_bytes = entry_count <= count ? MaxIndexBytes(kCoder, entry_count, count) : 0;
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  bool cut() const { return bytes.size() >= kHeadBytes + index_bytes; }
  // REQUIRES: cut().
  std::span<const std::byte> indices() const { return bytes.subspan(kHeadBytes, index_bytes); }
  std::span<const std::byte> codes() const { return bytes.subspan(kHeadBytes + index_bytes); }

  std::vector<std::byte> scratch;
  std::span<const std::byte> bytes;
  uint32_t entry_count = 0;
  int order = 0;
  size_t index_bytes = 0;
};

absl::Status Wrong(size_t count, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("moves of ", count, " values: ", what));
}

}  // namespace

ByteChain EncodeMoves(std::span<const float> from, std::span<const float> to,
                      std::span<const uint32_t> indices) {
  std::vector<uint32_t> coded(indices.size());
  std::ranges::transform(indices, coded.begin(),
                         [&](uint32_t index) { return Coded(from[index], to[index]); });
  const Choice choice = ChooseOrder(coded);
  const size_t index_bytes = MaxIndexBytes(kCoder, indices.size(), to.size());
  const size_t size = kHeadBytes + index_bytes + (choice.bits + 7) / 8;
  auto bytes = std::make_shared_for_overwrite<std::byte[]>(size);
  const auto entry_count = static_cast<uint32_t>(indices.size());
  std::memcpy(bytes.get(), &entry_count, sizeof(entry_count));
  bytes[sizeof(entry_count)] = static_cast<std::byte>(choice.order);
  EncodeIndices(kCoder, indices, to.size(), bytes.get() + kHeadBytes);
  BitWriter writer(bytes.get() + kHeadBytes + index_bytes);
  for (const uint32_t number : coded) {
    const uint64_t q = number + (uint64_t{1} << choice.order);
    const int low_bits = std::bit_width(q) - 1;
    const int zeros = low_bits - choice.order;
    writer.Put(uint64_t{1} << zeros, zeros + 1);
    writer.Put(q & ((uint64_t{1} << low_bits) - 1), low_bits);
  }
  writer.Finish();
  return ByteChain({bytes.get(), size}, bytes);
}

absl::Status CheckMoves(const ByteChain& payload, size_t count) {
  if (payload.size() < kHeadBytes) {
    return Wrong(count,
                 absl::StrCat("want a head of ", kHeadBytes, " bytes, got ", payload.size()));
  }
  const Parts parts(payload, count);
  if (parts.entry_count > count) {
    return Wrong(count, absl::StrCat("want k of at most ", count, ", got ", parts.entry_count));
  }
  if (parts.order > kLargestOrder) {
    return Wrong(count,
                 absl::StrCat("want an order of at most ", kLargestOrder, ", got ", parts.order));
  }
  if (!parts.cut()) {
    return Wrong(count, absl::StrCat("want ", parts.index_bytes, " bytes of indices for k = ",
                                     parts.entry_count, ", got ", payload.size() - kHeadBytes));
  }
  const absl::Status indices = CheckIndices(kCoder, parts.indices(), parts.entry_count, count);
  if (!indices.ok()) return Wrong(count, std::string(indices.message()));
  BitReader codes(parts.codes());
  for (uint32_t i = 0; i < parts.entry_count; ++i) {
    if (codes.Next(parts.order).has_value()) continue;
    return Wrong(count, absl::StrCat("want ", parts.entry_count, " codes in ", parts.codes().size(),
                                     " bytes, got ", i));
  }
  if (codes.AtEnd()) return absl::OkStatus();
  return Wrong(count, absl::StrCat("want the codes of ", parts.entry_count, " values, got ",
                                   parts.codes().size(), " bytes, which are more"));
}

size_t MoveCount(const ByteChain& payload) {
  uint32_t entry_count = 0;
  payload.Sub(0, sizeof(entry_count)).CopyTo(std::as_writable_bytes(std::span(&entry_count, 1)));
  return entry_count;
}

void ForEachMove(const ByteChain& payload, size_t count, MovesFunction block) {
  const Parts parts(payload, count);
  IndexReader reader(kCoder, parts.indices(), parts.entry_count, count);
  BitReader codes(parts.codes());
  std::array<uint32_t, 1024> indices, moves;
  for (size_t first = 0; first < parts.entry_count; first += indices.size()) {
    const size_t n = std::min(indices.size(), parts.entry_count - first);
    reader.Next(std::span(indices).first(n));
    for (uint32_t& move : std::span(moves).first(n)) {
      move = MoveOf(codes.Next(parts.order).value_or(0));
    }
    block(std::span(indices).first(n), std::span(moves).first(n));
  }
}

void ApplyMoves(const ByteChain& payload, std::span<float> values) {
  ForEachMove(payload, values.size(), [&](auto indices, auto moves) {
    for (size_t i = 0; i < indices.size(); ++i) {
      float& value = values[indices[i]];
      value = kernels::FloatOfNumber(kernels::NumberOfFloat(value) + moves[i]);
    }
  });
}

}  // namespace thinwire
