#include "proto/wire_format.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// Wire types. Types 6 and 7 do not exist.
enum : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5
};

// The largest depth of nested groups that the reader accepts, equal to the limit of protobuf's
// parser.
constexpr size_t kMaxGroupDepth = 100;

}  // namespace

WireReader::WireReader(const ByteChain& chain) : pieces_(chain.pieces()), end_(chain.size()) {}

void WireReader::Fail(absl::string_view problem) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(absl::StrCat("byte ", position_, ": ", problem));
}

bool WireReader::NextTag(uint32_t* tag) {
  if (!status_.ok() || position_ == end_) return false;
  // Like protobuf's parser, keeps only the low 32 bits of a tag.
  *tag = static_cast<uint32_t>(Varint());
  if (*tag >> 3 == 0)
    Fail(absl::StrCat("invalid tag (expected a field number above 0, got tag ", *tag, ")"));
  return status_.ok();
}

uint64_t WireReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (!status_.ok()) return 0;
    if (position_ == end_) {
      Fail("the message ends inside a varint");
      return 0;
    }
    const uint8_t byte = Byte();
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  Fail("varint is too long (expected at most 10 bytes)");
  return 0;
}

float WireReader::Float() {
  if (status_.ok() && end_ - position_ < sizeof(float)) Fail("the message ends inside a float");
  if (!status_.ok()) return 0;
  uint32_t bits = 0;
  for (int shift = 0; shift < 32; shift += 8) bits |= uint32_t{Byte()} << shift;
  return std::bit_cast<float>(bits);
}

uint8_t WireReader::Byte() {
  const auto byte = static_cast<uint8_t>(pieces_[piece_].bytes[in_piece_]);
  Pass(1);
  return byte;
}

size_t WireReader::Length() {
  const uint64_t length = Varint();
  if (!status_.ok()) return 0;
  if (length > end_ - position_) {
    Fail(absl::StrCat("the message is too short (expected ", length, " more bytes, got ",
                      end_ - position_, ")"));
    return 0;
  }
  return static_cast<size_t>(length);
}

ByteChain WireReader::Bytes() {
  ByteChain bytes;
  for (size_t left = Length(); left > 0;) {
    const ByteChain::Piece& piece = pieces_[piece_];
    const size_t taken = std::min(left, piece.bytes.size() - in_piece_);
    bytes.Append(piece.bytes.subspan(in_piece_, taken), piece.owner);
    Pass(taken);
    left -= taken;
  }
  return bytes;
}

void WireReader::Pass(size_t count) {
  if (count > end_ - position_) {
    Fail(absl::StrCat("the message is too short (expected ", count, " more bytes, got ",
                      end_ - position_, ")"));
    return;
  }
  position_ += count;
  while (count > 0) {
    const size_t taken = std::min(count, pieces_[piece_].bytes.size() - in_piece_);
    in_piece_ += taken;
    count -= taken;
    if (in_piece_ == pieces_[piece_].bytes.size()) {
      ++piece_;
      in_piece_ = 0;
    }
  }
}

void WireReader::Skip(uint32_t tag) {
  switch (tag & 7) {
    case kVarint:
      Varint();
      break;
    case kFixed64:
      Pass(8);
      break;
    case kBytes:
      Pass(Length());
      break;
    case kStartGroup:
      SkipGroup(tag >> 3);
      break;
    case kFixed32:
      Pass(4);
      break;
    default:
      Fail(absl::StrCat("invalid wire type (expected 0 to 5, got ", tag & 7, ")"));
  }
}

// SkipGroup is iterative. With recursion, deeply nested groups from a peer could overflow the call
// stack.
void WireReader::SkipGroup(uint32_t field) {
  std::vector<uint32_t> open = {field};
  uint32_t tag;
  while (!open.empty() && NextTag(&tag)) {
    if ((tag & 7) == kStartGroup && open.size() < kMaxGroupDepth) {
      open.push_back(tag >> 3);
    } else if ((tag & 7) == kStartGroup) {
      Fail(absl::StrCat("too many nested groups (expected at most ", kMaxGroupDepth, ")"));
    } else if ((tag & 7) == kEndGroup && tag >> 3 == open.back()) {
      open.pop_back();
    } else {
      Skip(tag);
    }
  }
  if (!open.empty()) Fail(absl::StrCat("group ", open.back(), " has no end"));
}

size_t WireReader::Enter() {
  const size_t outer_end = end_;
  const size_t length = Length();
  end_ = position_ + length;
  return outer_end;
}

void WireReader::Leave(size_t outer_end) { end_ = outer_end; }

void WireWriter::Put(uint64_t value) {
  for (; value >= 0x80; value >>= 7) own_.push_back(static_cast<std::byte>(value | 0x80));
  own_.push_back(static_cast<std::byte>(value));
}

void WireWriter::Varint(uint32_t field, uint64_t value) {
  if (value == 0) return;
  Put(VarintTag(field));
  Put(value);
}

void WireWriter::Float(uint32_t field, float value) {
  Put(FloatTag(field));
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) own_.push_back(static_cast<std::byte>(bits >> shift));
}

void WireWriter::PackedVarints(uint32_t field, const std::vector<uint32_t>& values) {
  if (values.empty()) return;
  WireWriter packed;
  for (uint32_t value : values) packed.Put(value);
  Message(field, packed);
}

void WireWriter::Payload(uint32_t field, const ByteChain& payload) {
  if (payload.empty()) return;
  Put(BytesTag(field));
  Put(payload.size());
  payloads_.emplace_back(own_.size(), payload);
  payload_bytes_ += payload.size();
}

void WireWriter::Message(uint32_t field, const WireWriter& message) {
  Put(BytesTag(field));
  Put(message.size());
  for (const auto& [before, payload] : message.payloads_) {
    payloads_.emplace_back(own_.size() + before, payload);
  }
  payload_bytes_ += message.payload_bytes_;
  own_.insert(own_.end(), message.own_.begin(), message.own_.end());
}

void WireWriter::Clear() {
  own_.clear();
  payloads_.clear();
  payload_bytes_ = 0;
}

ByteChain WireWriter::Finish() && {
  auto own = std::make_shared<const std::vector<std::byte>>(std::move(own_));
  const std::span<const std::byte> bytes(*own);
  ByteChain chain;
  size_t done = 0;
  for (const auto& [before, payload] : payloads_) {
    chain.Append(bytes.subspan(done, before - done), own);
    chain.Append(payload);
    done = before;
  }
  chain.Append(bytes.subspan(done), own);
  return chain;
}

}  // namespace thinwire
