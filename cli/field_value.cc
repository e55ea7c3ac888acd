#include "cli/field_value.h"

#include <google/protobuf/descriptor.h>

#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/text_reader.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using nlohmann::ordered_json;

template <typename Value, typename Parse, typename Set, typename Add>
bool Put(const FieldDescriptor& field, const std::string& word, Parse parse, Set set, Add add) {
  Value value{};
  if (!parse(word, &value)) return false;
  field.is_repeated() ? add(value) : set(value);
  return true;
}

bool PutWord(Message& m, const FieldDescriptor& field, const std::string& word) {
  const Reflection& r = *m.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return Put<uint32_t>(
          field, word, [](const std::string& w, uint32_t* v) { return absl::SimpleAtoi(w, v); },
          [&](uint32_t v) { r.SetUInt32(&m, &field, v); },
          [&](uint32_t v) { r.AddUInt32(&m, &field, v); });
    case FieldDescriptor::CPPTYPE_UINT64:
      return Put<uint64_t>(
          field, word, [](const std::string& w, uint64_t* v) { return absl::SimpleAtoi(w, v); },
          [&](uint64_t v) { r.SetUInt64(&m, &field, v); },
          [&](uint64_t v) { r.AddUInt64(&m, &field, v); });
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Put<double>(
          field, word, [](const std::string& w, double* v) { return absl::SimpleAtod(w, v); },
          [&](double v) { r.SetDouble(&m, &field, v); },
          [&](double v) { r.AddDouble(&m, &field, v); });
    case FieldDescriptor::CPPTYPE_BOOL:
      return Put<bool>(
          field, word, [](const std::string& w, bool* v) { return absl::SimpleAtob(w, v); },
          [&](bool v) { r.SetBool(&m, &field, v); }, [&](bool v) { r.AddBool(&m, &field, v); });
    case FieldDescriptor::CPPTYPE_STRING:
      field.is_repeated() ? r.AddString(&m, &field, word) : r.SetString(&m, &field, word);
      return true;
    default:
      return false;
  }
}

ordered_json ValueOf(const Message& m, const FieldDescriptor& field) {
  const Reflection& r = *m.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return r.GetUInt32(m, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return r.GetUInt64(m, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return r.GetDouble(m, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return r.GetBool(m, &field);
    case FieldDescriptor::CPPTYPE_STRING:
      return r.GetString(m, &field);
    default:
      return EffectiveJson(r.GetMessage(m, &field));
  }
}

ordered_json ElementsOf(const Message& m, const FieldDescriptor& field) {
  const Reflection& r = *m.GetReflection();
  ordered_json elements = ordered_json::array();
  for (int i = 0; i < r.FieldSize(m, &field); ++i) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      elements.push_back(r.GetRepeatedDouble(m, &field, i));
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      elements.push_back(r.GetRepeatedString(m, &field, i));
    }
  }
  return elements;
}

// A text of a file may be no UTF-8, which JSON cannot say.
std::string Dump(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// Text format of a JSON value: they agree on numbers, texts and truth.
void AppendText(const ordered_json& fields, const std::string& indent, std::string& text) {
  for (const auto& [name, value] : fields.items()) {
    if (value.is_object()) {
      absl::StrAppend(&text, indent, name, " {\n");
      AppendText(value, indent + "  ", text);
      absl::StrAppend(&text, indent, "}\n");
    } else if (value.is_array()) {
      for (const auto& element : value)
        absl::StrAppend(&text, indent, name, ": ", Dump(element), "\n");
    } else {
      absl::StrAppend(&text, indent, name, ": ", Dump(value), "\n");
    }
  }
}

}  // namespace

absl::Status SetField(Message& message, const FieldDescriptor& field, const std::string& word) {
  if (PutWord(message, field, word)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("want ", WantedValue(field), ", got ", word.empty() ? "nothing" : word));
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
    case FieldDescriptor::CPPTYPE_STRING:
      return field.default_value_string();
    default:
      return "";
  }
}

std::string EffectiveText(const Message& message) {
  std::string text;
  AppendText(EffectiveJson(message), "", text);
  return text;
}

ordered_json EffectiveJson(const Message& message) {
  ordered_json fields = ordered_json::object();
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    fields[field.name()] =
        field.is_repeated() ? ElementsOf(message, field) : ValueOf(message, field);
  }
  return fields;
}

}  // namespace thinwire
