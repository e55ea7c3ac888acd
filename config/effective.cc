#include "config/effective.h"

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "config/applicability.h"
#include "config/fields.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;
using nlohmann::ordered_json;

ordered_json JsonOf(const Message& message);

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
    case FieldDescriptor::CPPTYPE_ENUM:
      return r.GetEnum(m, &field)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return r.GetString(m, &field);
    default:
      return JsonOf(r.GetMessage(m, &field));
  }
}

ordered_json ElementOf(const Message& m, const FieldDescriptor& field, int i) {
  const Reflection& r = *m.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return r.GetRepeatedDouble(m, &field, i);
    case FieldDescriptor::CPPTYPE_ENUM:
      return r.GetRepeatedEnum(m, &field, i)->name();
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return JsonOf(r.GetRepeatedMessage(m, &field, i));
    default:
      return r.GetRepeatedString(m, &field, i);
  }
}

// Returns the fields that are set in MESSAGE as JSON.
ordered_json JsonOf(const Message& message) {
  ordered_json fields = ordered_json::object();
  std::vector<const FieldDescriptor*> given;
  message.GetReflection()->ListFields(message, &given);
  for (const FieldDescriptor* field : given) {
    if (!field->is_repeated()) {
      fields[field->name()] = ValueOf(message, *field);
      continue;
    }
    ordered_json elements = ordered_json::array();
    for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
      elements.push_back(ElementOf(message, *field, i));
    }
    fields[field->name()] = elements;
  }
  return fields;
}

}  // namespace

JobConfig EffectiveJob(const JobConfig& config) {
  JobConfig effective = config;
  for (const Field& field : Settings(*JobConfig::descriptor())) {
    if (Applies(field.name(), config)) SetToDefault(effective, field);
  }
  effective.mutable_compression()->clear_recipe();  // its settings are there
  return effective;
}

std::string EffectiveText(const JobConfig& config) {
  std::string text;
  TextFormat::PrintToString(EffectiveJob(config), &text);
  return text;
}

ordered_json EffectiveJson(const JobConfig& config) { return JsonOf(EffectiveJob(config)); }

std::string ChangedText(const JobConfig& config) {
  JobConfig defaults, changed = config;
  for (const Field& field : Settings(*JobConfig::descriptor())) {
    if (ValueText(config, field) == ValueText(defaults, field)) Clear(changed, field);
  }
  TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  std::vector<const FieldDescriptor*> given;
  changed.GetReflection()->ListFields(changed, &given);
  for (const FieldDescriptor* field : given) {
    // A message that has only this field is printed as one line.
    JobConfig one;
    one.GetReflection()->SwapFields(&one, &changed, {field});
    std::string line;
    printer.PrintToString(one, &line);
    absl::StripTrailingAsciiWhitespace(&line);
    if (!absl::EndsWith(line, "{ }")) absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace thinwire
