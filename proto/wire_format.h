// Protobuf's wire format over a ByteChain: a reader that shares the bytes of its input, and a
// writer that inserts payloads without copying them.
//
//   message   (tag value)*
//   tag       field number * 8 + wire type
//   varint    7 bits per byte, the lowest first, at most 10 bytes
//   float     4 bytes, the lowest first
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
#include "common/memory/byte_chain.h"

namespace thinwire {

// Return the tag of field number FIELD, for a varint, for length-delimited bytes or for a float. The
// functions are constexpr, so that tags can be case labels.
constexpr uint32_t VarintTag(uint32_t field) { return field << 3; }
constexpr uint32_t BytesTag(uint32_t field) { return field << 3 | 2; }
constexpr uint32_t FloatTag(uint32_t field) { return field << 3 | 5; }

// Reads a chain from front to back. After the first error, NextTag returns false, Varint and Float
// return 0, and Bytes returns an empty chain. A caller may therefore check status() once, at the end.
class WireReader {
 public:
  // CHAIN must outlive the reader.
  explicit WireReader(const ByteChain& chain);

  // Reads the next field's tag. Returns false at the end of the current message, or after an error.
  bool NextTag(uint32_t* tag);
  // Varint, Float and Bytes read the value of the field whose tag was read last. The caller chooses
  // between them by the tag's wire type.
  uint64_t Varint();
  float Float();
  ByteChain Bytes();
  // Skips the value of the field with tag TAG, whatever its wire type. A group is skipped together
  // with the fields in it.
  void Skip(uint32_t tag);

  // Enter begins to read the submessage whose tag was read last, and returns the end position of
  // the outer message. The caller passes this position to Leave after NextTag has returned false;
  // Leave then continues with the outer message.
  size_t Enter();
  void Leave(size_t outer_end);

  size_t position() const { return position_; }
  size_t end() const { return end_; }
  const absl::Status& status() const { return status_; }
  // Sets the status to "byte POSITION: PROBLEM", unless there is an earlier error.
  void Fail(absl::string_view problem);

 private:
  size_t Length();
  // Returns the next byte. REQUIRES: position_ < end_; no error.
  uint8_t Byte();
  void Pass(size_t count);
  void SkipGroup(uint32_t field);

  const std::span<const ByteChain::Piece> pieces_;
  size_t piece_ = 0;     // the index of the piece that contains the next byte
  size_t in_piece_ = 0;  // the next byte's offset in its piece; 0 at the end of the chain
  size_t position_ = 0;
  size_t end_;  // the end position of the current message
  absl::Status status_;
};

// Builds a message. Like proto3, omits fields with default values.
class WireWriter {
 public:
  void Varint(uint32_t field, uint64_t value);
  // Writes VALUE, also if it is 0.
  void Float(uint32_t field, float value);
  // Writes all elements of VALUES as one packed repeated field.
  void PackedVarints(uint32_t field, const std::vector<uint32_t>& values);
  void Payload(uint32_t field, const ByteChain& payload);
  // Writes MESSAGE as a field, even if it is empty.
  void Message(uint32_t field, const WireWriter& message);
  // Discards everything written so far.
  void Clear();

  size_t size() const { return own_.size() + payload_bytes_; }
  // Returns the message: the writer's own bytes in one buffer, with shared payloads in between.
  ByteChain Finish() &&;

 private:
  void Put(uint64_t value);

  std::vector<std::byte> own_;
  // The payloads, each with the number of bytes of own_ that precede it in the message.
  std::vector<std::pair<size_t, ByteChain>> payloads_;
  size_t payload_bytes_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_PROTO_WIRE_FORMAT_H_
