#include "common/codec/delta/ulp_delta.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/sparse/index_code.h"
#include "kernels/select/float_order.h"

namespace thinwire {
namespace {

constexpr IndexCoder kCoder = IndexCoder::kEliasFano;
constexpr size_t kHeadBytes = sizeof(uint32_t) + 1;
constexpr int kMaxOrder = 31;
// The largest width in bits of q = u + 2^order, where u is 0 to 2^32 - 2 (ulp_delta.h).
constexpr int kMaxBits = 33;

// Returns the unsigned number u that ulp_delta.h defines for the difference between the floats FROM
// and TO. u is small if the difference is small, positive or negative. REQUIRES: the difference is
// not 0.
uint32_t Coded(float from, float to) {
  const auto difference =
      static_cast<int32_t>(kernels::OrdinalOfFloat(to) - kernels::OrdinalOfFloat(from));
  return ((static_cast<uint32_t>(difference) << 1) ^ static_cast<uint32_t>(difference >> 31)) - 1;
}

// Returns the difference that the unsigned number CODED stands for: the inverse of Coded().
uint32_t DifferenceOf(uint32_t coded) {
  const uint32_t zigzag = coded + 1;
  return (zigzag >> 1) ^ (0 - (zigzag & 1));
}

// Returns the length in bits of the exponential Golomb code of CODED with order ORDER.
int CodeBits(uint32_t coded, int order) {
  return 2 * std::bit_width(coded + (uint64_t{1} << order)) - 1 - order;
}

struct Choice {
  int order;
  size_t bits;
};

// Returns the order of the exponential Golomb code for which the numbers in CODED take the fewest
// bits by an estimate. The estimate rounds each number down to a power of two.
Choice ChooseOrder(std::span<const uint32_t> coded) {
  std::array<size_t, kMaxBits> widths{};
  for (const uint32_t number : coded) ++widths[std::bit_width(number)];
  const auto estimate = [&](int order) {
    size_t bits = 0;
    for (int width = 0; width < kMaxBits; ++width) {
      bits += widths[width] * CodeBits(static_cast<uint32_t>((uint64_t{1} << width) >> 1), order);
    }
    return bits;
  };
  int best = 0;
  for (int order = 1; order <= kMaxOrder; ++order) {
    if (estimate(order) < estimate(best)) best = order;
  }
  size_t bits = 0;
  for (const uint32_t number : coded) bits += CodeBits(number, best);
  return {best, bits};
}

// Not thread-safe.
class BitWriter {
 public:
  explicit BitWriter(std::byte* out) : out_(out) {}

  // Appends BITS as COUNT bits. REQUIRES: BITS < 2^COUNT, COUNT <= 33.
  void Put(uint64_t bits, int count) {
    word_ |= bits << count_;
    count_ += count;
    while (count_ >= 32) PutBytes(4);
    // word_ now contains at most 31 bits. The next call adds at most 33 bits, so 64 bits suffice.
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

// Reads exponential Golomb codes and never reads beyond the given bytes. Not thread-safe.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Decodes the next number, which was coded with ORDER. Returns nullopt at the end of the bits and
  // for bits that no encoder writes.
  std::optional<uint32_t> Next(int order) {
    Fill();
    const int zeros = std::countr_zero(word_);
    const int low_bits = zeros + order;
    if (zeros >= count_ || low_bits >= kMaxBits) return std::nullopt;
    Drop(zeros + 1);
    Fill();
    if (low_bits > count_) return std::nullopt;
    const uint64_t one = uint64_t{1} << low_bits;
    const uint64_t number = (one | (word_ & (one - 1))) - (uint64_t{1} << order);
    Drop(low_bits);
    if (number >= UINT32_MAX) return std::nullopt;
    return static_cast<uint32_t>(number);
  }

  // Returns whether the only unread bits are the zeros that fill the last byte.
  bool AtEnd() const { return next_ == bytes_.size() && count_ < 8 && word_ == 0; }

 private:
  // Fills word_ with at least 56 unread bits, or with all unread bits if there are fewer.
  void Fill() {
    if (next_ + sizeof(word_) <= bytes_.size()) {
      uint64_t more;
      std::memcpy(&more, bytes_.data() + next_, sizeof(more));
      const int bytes = (63 - count_) / 8;
      word_ |= (more & LowBits(8 * bytes)) << count_;
      next_ += bytes;
      count_ += 8 * bytes;
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
  size_t next_ = 0;    // the index of the first byte that is not in word_
  uint64_t word_ = 0;  // zeros above count_
  int count_ = 0;
};

// The payload of a ULP delta, copied to one span if necessary, and split into head, indices and
// codes. REQUIRES: the payload contains a complete head.
struct Parts {
  Parts(const ByteChain& payload, size_t count) : bytes(payload.Contiguous(scratch)) {
    std::memcpy(&entry_count, bytes.data(), sizeof(entry_count));
    order = std::to_integer<int>(bytes[sizeof(entry_count)]);
    index_bytes = entry_count <= count ? MaxIndexBytes(kCoder, entry_count, count) : 0;
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  bool has_indices() const { return bytes.size() >= kHeadBytes + index_bytes; }
  // indices() and codes() REQUIRE that has_indices() is true.
  std::span<const std::byte> indices() const { return bytes.subspan(kHeadBytes, index_bytes); }
  std::span<const std::byte> codes() const { return bytes.subspan(kHeadBytes + index_bytes); }

  std::vector<std::byte> scratch;
  std::span<const std::byte> bytes;
  uint32_t entry_count = 0;
  int order = 0;
  size_t index_bytes = 0;
};

absl::Status CheckParts(const Parts& parts, size_t count) {
  const auto invalid = [](const auto&... words) {
    return absl::InvalidArgumentError(absl::StrCat(words...));
  };
  if (parts.entry_count > count) {
    return invalid("k out of range (expected at most ", count, ", got ", parts.entry_count, ")");
  }
  if (parts.order > kMaxOrder) {
    return invalid("order out of range (expected at most ", kMaxOrder, ", got ", parts.order, ")");
  }
  if (!parts.has_indices()) {
    return invalid("indices too short for k = ", parts.entry_count, " (expected ",
                   parts.index_bytes, " bytes, got ", parts.bytes.size() - kHeadBytes, ")");
  }
  RETURN_IF_ERROR(CheckIndices(kCoder, parts.indices(), parts.entry_count, count));
  BitReader codes(parts.codes());
  for (uint32_t i = 0; i < parts.entry_count; ++i) {
    if (codes.Next(parts.order).has_value()) continue;
    return invalid("too few codes in ", parts.codes().size(), " bytes (expected ",
                   parts.entry_count, ", got ", i, ")");
  }
  if (codes.AtEnd()) return absl::OkStatus();
  return invalid("bytes after the last of ", parts.entry_count, " codes (got ",
                 parts.codes().size(), " bytes of codes)");
}

}  // namespace

ByteChain EncodeUlpDelta(std::span<const float> from, std::span<const float> to,
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

UlpDelta::UlpDelta(ByteChain bytes, size_t count, size_t entry_count)
    : bytes_(std::move(bytes)), count_(count), entry_count_(entry_count) {}

absl::StatusOr<UlpDelta> UlpDelta::Check(ByteChain payload, size_t count) {
  if (payload.size() < kHeadBytes) {
    return absl::InvalidArgumentError(absl::StrCat("ULP delta of ", count,
                                                   " values: head too short (expected ", kHeadBytes,
                                                   " bytes, got ", payload.size(), ")"));
  }
  const Parts parts(payload, count);
  if (const absl::Status status = CheckParts(parts, count); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("ULP delta of ", count, " values: ", status.message()));
  }
  return UlpDelta(std::move(payload), count, parts.entry_count);
}

void UlpDelta::ForEachEntry(EntryFunction block) const {
  const Parts parts(bytes_, count_);
  IndexReader reader(kCoder, parts.indices(), parts.entry_count, count_);
  BitReader codes(parts.codes());
  std::array<uint32_t, 1024> indices, differences;
  for (size_t first = 0; first < parts.entry_count; first += indices.size()) {
    const size_t n = std::min(indices.size(), parts.entry_count - first);
    reader.Next(std::span(indices).first(n));
    for (uint32_t& difference : std::span(differences).first(n)) {
      difference = DifferenceOf(codes.Next(parts.order).value_or(0));
    }
    block(std::span(indices).first(n), std::span(differences).first(n));
  }
}

void UlpDelta::Apply(std::span<float> values) const {
  ForEachEntry([&](auto indices, auto differences) {
    for (size_t i = 0; i < indices.size(); ++i) {
      float& value = values[indices[i]];
      value = kernels::FloatOfOrdinal(kernels::OrdinalOfFloat(value) + differences[i]);
    }
  });
}

}  // namespace thinwire
