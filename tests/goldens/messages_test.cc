// Compares messages and payloads with those of earlier builds, byte by byte:
//
//   messages.txt   each message of the wire and of the files, with every field set
//   payloads.txt   a payload of each codec
//   protos.txt     the names, numbers and types of all fields, enum values and methods
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/codec/codec.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/codec/sparse/index_list.h"
#include "common/files/crc32c.h"
#include "proto/checkpoint.pb.h"
#include "proto/control.pb.h"
#include "proto/experiment.pb.h"
#include "proto/frame.h"
#include "proto/job.pb.h"
#include "proto/parameter_service.pb.h"
#include "proto/precision.pb.h"
#include "proto/probe.pb.h"
#include "proto/state.pb.h"
#include "proto/worker_event.pb.h"
#include "tests/goldens/golden_file.h"

namespace thinwire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

std::vector<const FileDescriptor*> Files() {
  return {JobConfig::descriptor()->file(),      JoinRequest::descriptor()->file(),
          WorkerMessage::descriptor()->file(),  LeadState::descriptor()->file(),
          PrecisionState::descriptor()->file(), CheckpointManifest::descriptor()->file(),
          WorkerEvent::descriptor()->file(),    ProbeRequest::descriptor()->file(),
          Experiment::descriptor()->file()};
}

// Returns an empty message of TYPE.
std::unique_ptr<Message> New(const Descriptor* type) {
  return std::unique_ptr<Message>(MessageFactory::generated_factory()->GetPrototype(type)->New());
}

std::string Serialize(const Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  EXPECT_TRUE(message.SerializeToCodedStream(&out));
  out.Trim();
  return bytes;
}

std::string ToText(const Message& message) {
  TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  EXPECT_TRUE(printer.PrintToString(message, &text));
  absl::StripTrailingAsciiWhitespace(&text);
  return text;
}

void Fill(Message& message, int variant);

// Adds a value to FIELD, or sets it. Values of different fields differ, and large types have large
// values.
void FillField(Message& message, const FieldDescriptor* field, int variant, int index) {
  const Reflection& reflection = *message.GetReflection();
  const int n = 10 * field->number() + index + 1;
  const auto set = [&](auto single, auto repeated, const auto& value) {
    if (field->is_repeated()) {
      (reflection.*repeated)(&message, field, value);
    } else {
      (reflection.*single)(&message, field, value);
    }
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return set(&Reflection::SetBool, &Reflection::AddBool, true);
    case FieldDescriptor::CPPTYPE_INT32:
      return set(&Reflection::SetInt32, &Reflection::AddInt32, -n);
    case FieldDescriptor::CPPTYPE_INT64:
      return set(&Reflection::SetInt64, &Reflection::AddInt64, -n * (int64_t{1} << 40));
    case FieldDescriptor::CPPTYPE_UINT32:
      return set(&Reflection::SetUInt32, &Reflection::AddUInt32, n + (uint32_t{1} << 20));
    case FieldDescriptor::CPPTYPE_UINT64:
      return set(&Reflection::SetUInt64, &Reflection::AddUInt64, n + (uint64_t{1} << 40));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return set(&Reflection::SetFloat, &Reflection::AddFloat, n + 0.5f);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return set(&Reflection::SetDouble, &Reflection::AddDouble, n + 0.25);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumDescriptor& type = *field->enum_type();
      return set(&Reflection::SetEnum, &Reflection::AddEnum, type.value(type.value_count() - 1));
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = field->type() == FieldDescriptor::TYPE_BYTES
                                   ? std::string("\0\xFF", 2) + static_cast<char>(n)
                                   : absl::StrCat(field->name(), n);
      if (field->is_repeated()) {
        reflection.AddString(&message, field, text);
      } else {
        reflection.SetString(&message, field, text);
      }
      return;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Fill(field->is_repeated() ? *reflection.AddMessage(&message, field)
                                       : *reflection.MutableMessage(&message, field),
                  variant);
  }
}

// Sets every field; of a oneof, the field that VARIANT selects. The combinations of all oneofs of
// MESSAGE and its parts have different variants.
void Fill(Message& message, int variant) {
  const Descriptor& type = *message.GetDescriptor();
  const int oneof_count = type.real_oneof_decl_count();
  ASSERT_LE(oneof_count, 1) << type.full_name();
  const int field_count = oneof_count == 0 ? 1 : type.oneof_decl(0)->field_count();
  const int chosen = variant % field_count;
  variant /= field_count;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* const field = type.field(i);
    const auto* const oneof = field->real_containing_oneof();
    if (oneof != nullptr && oneof->field(chosen) != field) continue;
    FillField(message, field, variant, 0);
    if (field->is_repeated() && !field->is_map()) FillField(message, field, variant, 1);
  }
}

// Adds the names of all fields that MESSAGE and its parts have to NAMES.
void AddPresentFields(const Message& message, std::set<std::string>& names) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    names.insert(field->full_name());
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      AddPresentFields(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                            : reflection.GetMessage(message, field),
                       names);
    }
  }
}

// Calls VISIT for TYPE and all types within it.
template <typename Visit>
void ForEachType(const Descriptor* type, const Visit& visit) {
  visit(type);
  for (int i = 0; i < type->nested_type_count(); ++i) ForEachType(type->nested_type(i), visit);
}

ByteChain Chain(const std::string& bytes) {
  const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
  return ByteChain(std::vector<std::byte>(first, first + bytes.size()));
}

std::string Hex(const ByteChain& chain) {
  const std::vector<std::byte> bytes = chain.ToVector();
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Checks that proto/frame.h reads and writes the message of TYPE with BYTES, which has no unknown
// field. Returns false if TYPE is no message of the data plane.
bool CheckFrame(const std::string& type, const std::string& bytes) {
  if (type == "thinwire.WorkerMessage") {
    const auto frame = ParseWorkerFrame(Chain(bytes));
    EXPECT_TRUE(frame.ok()) << frame.status();
    if (!frame.ok()) return true;
    EXPECT_EQ(Hex(WriteFrame(*frame)), absl::BytesToHexString(bytes));
    return true;
  }
  if (type != "thinwire.ServerMessage") return false;
  const auto frame = ParseServerFrame(Chain(bytes));
  EXPECT_TRUE(frame.ok()) << frame.status();
  if (!frame.ok()) return true;
  EXPECT_EQ(Hex(WriteFrame(*frame)), absl::BytesToHexString(bytes));
  return true;
}

// An entry of messages.txt consists of three lines: the type, the text and the bytes of a message.
TEST(MessagesTest, MessagesOfEarlierBuildsHaveTheSameFieldsAndBytes) {
  std::string text = ReadGolden("messages.txt");
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size() % 3, 0u);
  std::set<std::string> present;
  int frame_count = 0;
  for (size_t i = 0; i < lines.size(); i += 3) {
    const std::string& type = lines[i];
    SCOPED_TRACE(type);
    const Descriptor* const descriptor =
        google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(type);
    ASSERT_NE(descriptor, nullptr) << "the type was removed";
    const std::unique_ptr<Message> read = New(descriptor), parsed = New(descriptor);
    const std::string bytes = absl::HexStringToBytes(lines[i + 2]);
    ASSERT_TRUE(read->ParseFromString(bytes));
    EXPECT_EQ(ToText(*read), lines[i + 1]);
    ASSERT_TRUE(TextFormat::ParseFromString(lines[i + 1], parsed.get()));
    EXPECT_EQ(absl::BytesToHexString(Serialize(*parsed)), lines[i + 2]);
    AddPresentFields(*read, present);
    if (CheckFrame(type, bytes)) ++frame_count;
  }
  // Adds an entry for each type with a field that no entry has.
  for (const FileDescriptor* file : Files()) {
    if (file == Experiment::descriptor()->file()) continue;  // a file of text
    for (int i = 0; i < file->message_type_count(); ++i) {
      const Descriptor* const type = file->message_type(i);
      const auto missing = [&] {
        bool missing = false;
        ForEachType(type, [&](const Descriptor* nested) {
          for (int k = 0; k < nested->field_count(); ++k) {
            missing = missing || !present.contains(nested->field(k)->full_name());
          }
        });
        return missing;
      };
      for (int variant = 0; missing(); ++variant) {
        ASSERT_LT(variant, 1000) << type->full_name();
        const std::unique_ptr<Message> message = New(type);
        Fill(*message, variant);
        const size_t count = present.size();
        AddPresentFields(*message, present);
        if (present.size() == count) continue;
        absl::StrAppend(&text, type->full_name(), "\n", ToText(*message), "\n",
                        absl::BytesToHexString(Serialize(*message)), "\n");
      }
    }
  }
  ExpectGolden("messages.txt", GoldenKind::kPermanent, text);
  if (UpdatedFolder().empty()) {
    EXPECT_GT(lines.size() / 3, 50u);
    EXPECT_GE(frame_count, 2);
  }
}

void AddEnum(const EnumDescriptor& type, std::string& text) {
  for (int i = 0; i < type.value_count(); ++i) {
    absl::StrAppend(&text, type.full_name(), " ", type.value(i)->name(), " = ",
                    type.value(i)->number(), "\n");
  }
}

std::string LineOf(const FieldDescriptor& field) {
  std::string type = field.type_name();
  if (field.message_type() != nullptr) type = field.message_type()->full_name();
  if (field.enum_type() != nullptr) type = field.enum_type()->full_name();
  return absl::StrCat(field.full_name(), " = ", field.number(), " ",
                      field.is_repeated() ? "repeated " : "",
                      field.has_presence() ? "optional " : "", type, "\n");
}

TEST(MessagesTest, FieldsKeepTheirNamesNumbersAndTypes) {
  std::string text;
  for (const FileDescriptor* file : Files()) {
    for (int i = 0; i < file->enum_type_count(); ++i) AddEnum(*file->enum_type(i), text);
    for (int i = 0; i < file->message_type_count(); ++i) {
      ForEachType(file->message_type(i), [&](const Descriptor* type) {
        for (int k = 0; k < type->field_count(); ++k)
          absl::StrAppend(&text, LineOf(*type->field(k)));
        for (int k = 0; k < type->enum_type_count(); ++k) AddEnum(*type->enum_type(k), text);
      });
    }
    for (int i = 0; i < file->service_count(); ++i) {
      for (int k = 0; k < file->service(i)->method_count(); ++k) {
        const auto& method = *file->service(i)->method(k);
        absl::StrAppend(&text, method.full_name(), " ", method.client_streaming() ? "stream " : "",
                        method.input_type()->full_name(), " -> ",
                        method.server_streaming() ? "stream " : "",
                        method.output_type()->full_name(), "\n");
      }
    }
  }
  ExpectGolden("protos.txt", GoldenKind::kPermanent, text);
}

// A matrix of 12 x 10 values, some of them 0.
std::vector<float> Values() {
  std::vector<float> values;
  uint64_t state = 7;
  for (int i = 0; i < 120; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const float value = static_cast<float>(state >> 40) * 0x1p-23f - 1;
    values.push_back(i % 9 == 4 ? 0 : value * value * value);
  }
  return values;
}

std::string DecodedCrc(const ByteChain& bytes) {
  const auto payload = CheckPayload(bytes, Values().size());
  EXPECT_TRUE(payload.ok()) << payload.status();
  if (!payload.ok()) return "";
  std::vector<float> decoded(Values().size());
  DecodePayload(*payload, decoded);
  return absl::StrFormat("%08x", Crc32c(std::as_bytes(std::span(decoded))));
}

// Each line has the codec, the checksum of the decoded values and the payload. The golden payload
// is decoded, and the values are encoded again.
TEST(MessagesTest, CodecsReadAndWriteThePayloadsOfEarlierBuilds) {
  size_t decoded_count = 0;
  for (const std::string& line : std::vector<std::string>(
           absl::StrSplit(ReadGolden("payloads.txt"), '\n', absl::SkipEmpty()))) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    ASSERT_EQ(words.size(), 3u);
    if (words[1] == "-") continue;
    EXPECT_EQ(DecodedCrc(Chain(absl::HexStringToBytes(words[2]))), words[1]) << words[0];
    ++decoded_count;
  }
  std::string text;
  const std::vector<float> values = Values();
  const auto add = [&](const std::string& name, const CodecSpec& spec) {
    const auto codec = MakeCodec(spec);
    ASSERT_TRUE(codec.ok()) << codec.status();
    std::vector<std::byte> bytes((*codec)->MaxPayloadBytes(values.size()));
    std::vector<float> residual(values.size());
    CodecMemory memory = {.matrix = {.columns = 10}};
    bytes.resize(
        (*codec)->EncodeFeedback(values, residual, {.shared = 3, .per_worker = 5}, memory, bytes));
    const ByteChain payload(std::move(bytes));
    absl::StrAppend(&text, name, " ", DecodedCrc(payload), " ", Hex(payload), "\n");
  };
  for (const CodecRow& row : CodecTable()) {
    CodecSpec spec = {.id = row.id, .density = 0.1};
    add(std::string(row.name), spec);
    if (row.family == CodecFamily::kDense || row.family == CodecFamily::kCodebook) continue;
    spec.values = CodecId::kFp8E4m3;
    spec.indices = IndexCoder::kGolombRice;
    add(absl::StrCat(std::string(row.name), "_fp8_e4m3"), spec);
  }
  std::vector<float> next = values;
  const std::vector<uint32_t> changed = {0, 1, 17, 64, 119};
  for (const uint32_t i : changed) next[i] = next[i] * 1.001f + 1e-6f;
  const ByteChain delta = EncodeUlpDelta(values, next, changed);
  absl::StrAppend(&text, "ulp_delta - ", Hex(delta), "\n");
  absl::StrAppend(&text, "index_list - ", Hex(EncodeIndexList(changed, values.size())), "\n");
  ExpectGolden("payloads.txt", GoldenKind::kPermanent, text);
  if (UpdatedFolder().empty()) {
    EXPECT_GE(decoded_count, 33u);
  }

  auto applied = values;
  const auto checked = UlpDelta::Check(delta, values.size());
  ASSERT_TRUE(checked.ok()) << checked.status();
  checked->Apply(applied);
  EXPECT_EQ(applied, next);
  EXPECT_EQ(DecodeIndexList(EncodeIndexList(changed, values.size()), values.size()).value(),
            changed);
}

}  // namespace
}  // namespace thinwire
