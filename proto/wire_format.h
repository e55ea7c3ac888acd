// Protobuf's wire format over a ByteChain: a reader that shares the bytes it is asked for, and a
// writer that leaves room for payloads between its own bytes.
//
//   message   (tag value)*
//   tag       field number * 8 + type
//   varint    7 bits a byte, the lowest first, at most 10 bytes
//
// Not thread-safe.
#ifndef THINWIRE_PROTO_WIRE_FORMAT_H_
#define THINWIRE_PROTO_WIRE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/byte_chain.h"

namespace thinwire {

// A tag's two halves as one number, good for a case label.
constexpr uint32_t VarintTag(uint32_t field) { return field << 3; }
constexpr uint32_t BytesTag(uint32_t field) { return field << 3 | 2; }

// Reads a chain from front to back. The first error sticks: from then on NextTag says false and
// values are empty, so a caller looks at status() once, at the end.
class WireReader {
 public:
  // CHAIN outlives the reader.
  explicit WireReader(const ByteChain& chain);

  // The next field's tag; false at the end of the message at hand, or after an error.
  bool NextTag(uint32_t* tag);
  // The value of a field whose tag was just read. The caller picks the one that fits the tag's
  // type.
  uint64_t Varint();
  ByteChain Bytes();
  // Passes over a value of any type, a group with all it holds.
  void Skip(uint32_t tag);

  // Enters a message that is a field of this one; Leave goes back to the outer one when NextTag has
  // said false.
  size_t Enter();
  void Leave(size_t outer_end);

  size_t position() const { return position_; }
  size_t end() const { return end_; }
  const absl::Status& status() const { return status_; }
  // Makes the first error: "byte 17: want ...".
  void Fail(absl::string_view want);

 private:
  size_t Length();
  void Pass(size_t count);
  void SkipGroup(uint32_t field);

  const std::span<const ByteChain::Piece> pieces_;
  size_t piece_ = 0;     // where the next byte lies
  size_t in_piece_ = 0;  // below pieces_[piece_].bytes.size(), unless at the very end
  size_t position_ = 0;
  size_t end_;  // of the message at hand
  absl::Status status_;
};

// Collects a message. Fields at their default value are left out, as proto3 does.
class WireWriter {
 public:
  void Varint(uint32_t field, uint64_t value);
  // One varint after the other, in one field.
  void PackedVarints(uint32_t field, const std::vector<uint32_t>& values);
  void Payload(uint32_t field, const ByteChain& payload);
  // A message as a field of this one, also when it is empty.
  void Message(uint32_t field, const WireWriter& message);
  // Forgets what was written.
  void Clear();

  size_t size() const { return own_.size() + payload_bytes_; }
  // The message: the writer's own bytes in one buffer, the payloads shared.
  ByteChain Finish() &&;

 private:
  void Put(uint64_t value);

  std::vector<std::byte> own_;
  std::vector<std::pair<size_t, ByteChain>>
      payloads_;  // each with the own_ bytes that come before it
  size_t payload_bytes_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_PROTO_WIRE_FORMAT_H_
