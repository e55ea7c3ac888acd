#include "proto/parsed_bytes.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// The memory of one element of a repeated field and of one unknown field. Both include the old
// array while an array grows.
constexpr uint64_t kElementBytes = 24;
constexpr uint64_t kStringBytes = 64;

// Adds up the estimates of one message. Stops at the first byte that is no message.
class Estimate {
 public:
  explicit Estimate(google::protobuf::io::ZeroCopyInputStream& bytes) : in_(&bytes) {
    in_.SetTotalBytesLimit(std::numeric_limits<int>::max());
  }

  uint64_t bytes() const { return bytes_; }

  // Reads the fields of a message of type TYPE. Returns false if it cannot or need not read on.
  bool ReadFields(const Descriptor* type) {
    while (bytes_ <= kMostParsedBytes) {
      const uint32_t tag = in_.ReadTag();
      if (tag == 0) return in_.ConsumedEntireMessage();
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      if (!ReadField(tag, type->FindFieldByNumber(number))) return false;
    }
    return false;
  }

 private:
  bool ReadField(uint32_t tag, const FieldDescriptor* field) {
    if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      return ReadLengthDelimited(field);
    }
    if (field == nullptr || field->is_repeated()) bytes_ += kElementBytes;
    return WireFormatLite::SkipField(&in_, tag);
  }

  bool ReadLengthDelimited(const FieldDescriptor* field) {
    int length = 0;
    if (!in_.ReadVarintSizeAsInt(&length)) return false;
    if (field != nullptr && field->message_type() != nullptr) {
      bytes_ += kElementBytes + google::protobuf::MessageFactory::generated_factory()
                                    ->GetPrototype(field->message_type())
                                    ->SpaceUsedLong();
      const auto outer = in_.IncrementRecursionDepthAndPushLimit(length);
      return outer.second >= 0 && ReadFields(field->message_type()) &&
             in_.DecrementRecursionDepthAndPopLimit(outer.first);
    }
    // An element of a packed field has at least one byte.
    bytes_ +=
        field != nullptr && field->is_packable() ? kElementBytes * length : kStringBytes + length;
    return in_.Skip(length);
  }

  google::protobuf::io::CodedInputStream in_;
  uint64_t bytes_ = 0;
};

}  // namespace

absl::Status CheckParsedBytes(google::protobuf::io::ZeroCopyInputStream& bytes,
                              const google::protobuf::Descriptor& type) {
  Estimate estimate(bytes);
  estimate.ReadFields(&type);
  if (estimate.bytes() <= kMostParsedBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(type.name(),
                                                 ": needs too much memory (expected at most ",
                                                 kMostParsedBytes, " bytes, got more)"));
}

}  // namespace thinwire
