#include "config/fields.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/codec/table.h"
#include "common/text/did_you_mean.h"
#include "proto/job.pb.h"

namespace thinwire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

void AddLeafFields(const Descriptor& type, std::vector<const FieldDescriptor*> path,
                   std::vector<Field>& to) {
  for (int i = 0; i < type.field_count(); ++i) {
    path.push_back(type.field(i));
    if (type.field(i)->message_type() != nullptr) {
      AddLeafFields(*type.field(i)->message_type(), path, to);
    } else {
      to.push_back({path});
    }
    path.pop_back();
  }
}

bool IsCodec(int number) { return CodecIdFromWire(static_cast<uint32_t>(number)).ok(); }

// Returns true if FIELD, an enum field, takes the value NUMBER of its enum.
bool Takes(const FieldDescriptor& field, int number) {
  if (!field.options().HasExtension(codec_use)) return true;
  const int of_delta = number - Compression::Codec::delta;
  switch (field.options().GetExtension(codec_use)) {
    case CodecUse::gradients:
      return IsCodec(number);
    case CodecUse::pushes:
      return IsCodec(number) || number >= Compression::Codec::auto_;
    case CodecUse::pulls:
      if (of_delta == 0) return true;
      return IsCodec(number) ? RowOf(CodecId{static_cast<uint8_t>(number)}).carries_parameters
                             : IsCodec(of_delta);
    case CodecUse::values:
      return IsCodec(number) && RowOf(CodecId{static_cast<uint8_t>(number)}).dense();
  }
  return false;
}

// Adds the wrong values of MESSAGE, whose path is PREFIX.
void AddWrongValues(const Message& message, const std::string& prefix, Problems& problems) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> given;
  reflection.ListFields(message, &given);
  for (const FieldDescriptor* field : given) {
    const bool repeated = field->is_repeated();
    const int count = repeated ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const std::string path =
          absl::StrCat(prefix, field->name(), repeated ? absl::StrCat("[", i, "]") : "");
      if (field->message_type() != nullptr) {
        AddWrongValues(repeated ? reflection.GetRepeatedMessage(message, field, i)
                                : reflection.GetMessage(message, field),
                       path + ".", problems);
      } else if (field->enum_type() != nullptr) {
        const EnumValueDescriptor& value = repeated ? *reflection.GetRepeatedEnum(message, field, i)
                                                    : *reflection.GetEnum(message, field);
        if (!Takes(*field, value.number())) {
          problems.Add(NameOfPath(path), WrongValueText(*field, value.name()));
        }
      }
    }
  }
}

// Returns the submessage of MESSAGE that directly contains FIELD.
const Message& HolderOf(const Message& message, const Field& field) {
  const Message* holder = &message;
  for (size_t i = 0; i + 1 < field.path.size(); ++i) {
    holder = &holder->GetReflection()->GetMessage(*holder, field.path[i]);
  }
  return *holder;
}

Message& MutableHolderOf(Message& message, const Field& field) {
  Message* holder = &message;
  for (size_t i = 0; i + 1 < field.path.size(); ++i) {
    holder = holder->GetReflection()->MutableMessage(holder, field.path[i]);
  }
  return *holder;
}

// Sets FIELD of MESSAGE to the value that WORD stands for. Returns false if WORD is not a value of
// FIELD.
bool Put(Message& message, const FieldDescriptor& field, const std::string& word) {
  const Reflection& reflection = *message.GetReflection();
  const bool repeated = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32: {
      uint32_t value = 0;
      if (!absl::SimpleAtoi(word, &value)) return false;
      repeated ? reflection.AddUInt32(&message, &field, value)
               : reflection.SetUInt32(&message, &field, value);
      return true;
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t value = 0;
      if (!absl::SimpleAtoi(word, &value)) return false;
      repeated ? reflection.AddUInt64(&message, &field, value)
               : reflection.SetUInt64(&message, &field, value);
      return true;
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double value = 0;
      if (!absl::SimpleAtod(word, &value)) return false;
      repeated ? reflection.AddDouble(&message, &field, value)
               : reflection.SetDouble(&message, &field, value);
      return true;
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      if (word != "true" && word != "false") return false;
      repeated ? reflection.AddBool(&message, &field, word == "true")
               : reflection.SetBool(&message, &field, word == "true");
      return true;
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumValueDescriptor* value = field.enum_type()->FindValueByName(word);
      if (value == nullptr || !Takes(field, value->number())) return false;
      repeated ? reflection.AddEnum(&message, &field, value)
               : reflection.SetEnum(&message, &field, value);
      return true;
    }
    case FieldDescriptor::CPPTYPE_STRING:
      repeated ? reflection.AddString(&message, &field, word)
               : reflection.SetString(&message, &field, word);
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string Field::DottedName() const {
  return absl::StrJoin(path, ".", [](std::string* out, const FieldDescriptor* field) {
    out->append(field->name());
  });
}

std::vector<Field> LeafFields(const Descriptor& type) {
  std::vector<Field> fields;
  AddLeafFields(type, {}, fields);
  return fields;
}

std::vector<Field> Settings(const Descriptor& type) {
  std::vector<Field> fields = LeafFields(type);
  std::erase_if(fields, [](const Field& field) {
    return std::any_of(field.path.begin(), field.path.end(), [](const FieldDescriptor* part) {
      return part->is_repeated() && part->message_type() != nullptr;
    });
  });
  return fields;
}

bool IsGiven(const Message& message, const Field& field) {
  const Message& holder = HolderOf(message, field);
  const Reflection& reflection = *holder.GetReflection();
  return field.descriptor().is_repeated() ? reflection.FieldSize(holder, &field.descriptor()) > 0
                                          : reflection.HasField(holder, &field.descriptor());
}

std::string ValueText(const Message& message, const Field& field) {
  const Message& holder = HolderOf(message, field);
  std::string text;
  if (!field.descriptor().is_repeated()) {
    TextFormat::PrintFieldValueToString(holder, &field.descriptor(), -1, &text);
    return text;
  }
  std::vector<std::string> elements;
  for (int i = 0; i < holder.GetReflection()->FieldSize(holder, &field.descriptor()); ++i) {
    TextFormat::PrintFieldValueToString(holder, &field.descriptor(), i, &text);
    elements.push_back(text);
  }
  return absl::StrCat("[", absl::StrJoin(elements, ", "), "]");
}

absl::Status SetFromWord(Message& message, const Field& field, const std::string& word) {
  if (Put(MutableHolderOf(message, field), field.descriptor(), word)) return absl::OkStatus();
  return absl::InvalidArgumentError(WrongValueText(field.descriptor(), word));
}

void Clear(Message& message, const Field& field) {
  Message& holder = MutableHolderOf(message, field);
  holder.GetReflection()->ClearField(&holder, &field.descriptor());
}

std::vector<std::string> ReplaceValue(google::protobuf::Message& message, const Field& field,
                                      std::span<const std::string> words, const std::string& place,
                                      FieldPlaces& places) {
  std::vector<std::string> problems;
  Clear(message, field);
  for (const std::string& word : words) {
    const absl::Status set = SetFromWord(message, field, word);
    if (!set.ok()) problems.push_back(absl::StrCat(place, ": ", set.message()));
  }
  std::erase_if(places, [prefix = field.name() + "["](const auto& other) {
    return other.first.starts_with(prefix);
  });
  places[field.name()] = place;
  return problems;
}

void SetToDefault(Message& message, const Field& field) {
  const std::string text = DefaultText(field.descriptor());
  if (!field.descriptor().is_repeated() && !text.empty() && !IsGiven(message, field)) {
    Put(MutableHolderOf(message, field), field.descriptor(), text);
  }
}

std::vector<std::string_view> EnumNames(const FieldDescriptor& field) {
  std::vector<std::string_view> names;
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    const EnumValueDescriptor& value = *field.enum_type()->value(i);
    if (Takes(field, value.number())) names.push_back(value.name());
  }
  return names;
}

std::string ExpectedValue(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return "a whole number from 0 to 4294967295";
    case FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number from 0 to 18446744073709551615";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_STRING:
      return "text in quotes";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "fields in braces";
    case FieldDescriptor::CPPTYPE_ENUM: {
      std::string names;
      for (std::string_view name : EnumNames(field)) {
        absl::StrAppend(&names, names.empty() ? "one of " : ", ", std::string(name));
      }
      return names;
    }
    default:
      return field.cpp_type_name();
  }
}

std::string WrongValueText(const FieldDescriptor& field, std::string_view got) {
  std::string text = absl::StrCat("wrong value (expected ", ExpectedValue(field), ", got ",
                                  got.empty() ? "nothing" : std::string(got));
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    const std::string nearest = DidYouMean(got, EnumNames(field));
    if (!nearest.empty()) absl::StrAppend(&text, "; did you mean ", nearest, "?");
  }
  return text + ")";
}

Problems WrongValues(const Message& message) {
  Problems problems;
  AddWrongValues(message, "", problems);
  return problems;
}

std::string DefaultText(const FieldDescriptor& field) {
  if (field.is_repeated()) return "";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(field.default_value_uint32());
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(field.default_value_uint64());
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrCat(field.default_value_double());
    case FieldDescriptor::CPPTYPE_BOOL:
      return field.default_value_bool() ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return field.default_value_enum()->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return field.default_value_string();
    default:
      return "";
  }
}

}  // namespace thinwire
