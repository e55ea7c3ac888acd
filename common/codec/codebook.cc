#include "common/codec/codebook.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/pack_bits.h"

namespace thinwire {
namespace {

constexpr size_t kQsgdGroup = 512;

// N of table_N and lloyd_N; 0 of another codec.
int TableBits(CodecId id) {
  if (id >= CodecId::kTable1 && id <= CodecId::kTable8) {
    return static_cast<int>(id) - static_cast<int>(CodecId::kTable1) + 1;
  }
  if (id >= CodecId::kLloyd1 && id <= CodecId::kLloyd8) {
    return static_cast<int>(id) - static_cast<int>(CodecId::kLloyd1) + 1;
  }
  return 0;
}

bool IsOneBit(CodecId id) { return id == CodecId::kOneBit || id == CodecId::kOneBitSign; }

uint32_t Word(const Codebook::Head& head) {
  uint32_t word = 0;
  std::memcpy(&word, head.data(), sizeof(word));
  return word;
}

}  // namespace

bool Codebook::IsOf(CodecId id) {
  return IsOneBit(id) || TableBits(id) > 0 || id == CodecId::kInt8 || id == CodecId::kTwoBit ||
         id == CodecId::kQsgd || id == CodecId::kLog4;
}

size_t Codebook::HeadBytes(CodecId id) {
  if (IsOneBit(id)) return 4;
  if (id == CodecId::kLog4) return 3;
  return id == CodecId::kInt8 || id == CodecId::kQsgd ? 1 : 0;
}

Codebook::Head Codebook::HeadOf(CodecId id, uint32_t setting) {
  Head head = {};
  if (IsOneBit(id)) std::memcpy(head.data(), &setting, sizeof(setting));
  if (id == CodecId::kQsgd) head[0] = static_cast<std::byte>(std::min(setting, uint32_t{255}));
  return head;
}

absl::StatusOr<Codebook> Codebook::Read(CodecId id, const Head& head) {
  if (IsOneBit(id) && Word(head) % kernels::kCodesInUnit != 0) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(CodecName(id)),
                                                   " group: want a multiple of ",
                                                   kernels::kCodesInUnit, ", got ", Word(head)));
  }
  const int levels = std::to_integer<int>(head[0]);
  if (id == CodecId::kQsgd && (levels < 1 || levels > 127)) {
    return absl::InvalidArgumentError(absl::StrCat("qsgd levels: want 1 to 127, got ", levels));
  }
  return Codebook(id, head);
}

Codebook::Codebook(CodecId id, const Head& head) : id_(id), head_(head) {
  number_count_ = 1;
  switch (id) {
    case CodecId::kInt8:
      bits_ = 8;
      return;
    case CodecId::kOneBit:
    case CodecId::kOneBitSign:
      bits_ = 1;
      group_ = Word(head);
      number_count_ = id == CodecId::kOneBit ? 2 : 1;
      return;
    case CodecId::kTwoBit:
      bits_ = 2;
      return;
    case CodecId::kQsgd:
      bits_ = 1 + std::bit_width(std::to_integer<unsigned>(head[0]));
      group_ = kQsgdGroup;
      return;
    case CodecId::kLog4:
      bits_ = 4;
      number_count_ = 0;
      return;
    default:
      bits_ = TableBits(id);
      number_count_ = size_t{1} << (bits_ - 1);
  }
}

size_t Codebook::NumbersOffset(size_t group_number) const {
  return head_bytes() + group_number * number_count_ * sizeof(float);
}

size_t Codebook::group_count(size_t count) const {
  if (count == 0) return 0;
  return group_ == 0 ? 1 : (count + group_ - 1) / group_;
}

size_t Codebook::CodesOffset(size_t count) const { return NumbersOffset(group_count(count)); }

size_t Codebook::BodyBytes(size_t count) const {
  return CodesOffset(count) + kernels::PackedBytes(count, bits_);
}

float Codebook::Log4Magnitude(size_t code) const {
  const float ratio = 1.0f - static_cast<float>(std::to_integer<int>(head_[2])) / 256.0f;
  float magnitude = std::bit_cast<float>(Word(head_) << 16);
  for (size_t i = code; i < 7; ++i) magnitude *= ratio;
  return magnitude;
}

float Codebook::Magnitude(std::span<const float> numbers, size_t code) const {
  switch (id_) {
    case CodecId::kTwoBit:
      return code == 0 ? 0.0f : numbers[0];
    case CodecId::kQsgd: {
      const size_t levels = std::to_integer<size_t>(head_[0]);
      return numbers[0] * (static_cast<float>(std::min(code, levels)) / static_cast<float>(levels));
    }
    case CodecId::kLog4:
      return Log4Magnitude(code);
    default:
      return numbers[code];
  }
}

void Codebook::FillTable(std::span<const float> numbers, float scale,
                         std::span<float> table) const {
  if (id_ == CodecId::kInt8) {
    // A product beyond the largest float is of a code that the encoder does not use.
    constexpr float kMost = std::numeric_limits<float>::max();
    const float zero = static_cast<float>(std::to_integer<int>(head_[0]));
    for (size_t c = 0; c < table_size(); ++c) {
      const float value = numbers[0] * (static_cast<float>(c) - zero);
      table[c] = scale * (std::isfinite(numbers[0]) ? std::clamp(value, -kMost, kMost) : value);
    }
    return;
  }
  const size_t half = table_size() / 2;
  for (size_t c = 0; c < half; ++c) {
    table[c] = scale * Magnitude(numbers, c);
    table[half + c] = id_ == CodecId::kOneBit ? scale * numbers[1] : -table[c];
  }
}

}  // namespace thinwire
