#include "cli/field_flags.h"

#include <google/protobuf/descriptor.h>

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/field_value.h"
#include "common/did_you_mean.h"

namespace thinwire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string TypeName(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return "TEXT";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "[true|false]";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "NUMBER";
    default:
      return "COUNT";
  }
}

std::string Describe(const FieldDescriptor& field, const FieldDocs& docs) {
  const auto doc = docs.find(absl::StrCat(field.containing_type()->name(), ".", field.name()));
  std::string text = doc == docs.end() ? "" : doc->second;
  const std::string standard = DefaultText(field);
  if (!standard.empty()) absl::StrAppend(&text, text.empty() ? "" : " ", "Default: ", standard);
  return text;
}

// The message that holds the last field of PATH.
Message& HolderOf(Message& message, const std::vector<const FieldDescriptor*>& path) {
  Message* holder = &message;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    holder = holder->GetReflection()->MutableMessage(holder, path[i]);
  }
  return *holder;
}

}  // namespace

FieldFlags::FieldFlags(const Descriptor& type, const FieldDocs& docs, CLI::App& app) {
  Add(type, docs, {}, app);
}

void FieldFlags::Add(const Descriptor& type, const FieldDocs& docs,
                     std::vector<const FieldDescriptor*> path, CLI::App& app) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    path.push_back(field);
    if (field->message_type() != nullptr) {
      Add(*field->message_type(), docs, path, app);
    } else {
      // The words are converted by Apply, which can say what a field wants.
      CLI::Option* option = app.add_option(
          "--" + field->name(), [](const CLI::results_t&) { return true; }, Describe(*field, docs));
      option->type_name(TypeName(*field))->type_size(1);
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
        option->expected(0, 1);
      } else {
        option->expected(1);
      }
      option->multi_option_policy(field->is_repeated() ? CLI::MultiOptionPolicy::TakeAll
                                                       : CLI::MultiOptionPolicy::TakeLast);
      option->group(type.name());
      flags_.push_back({path, option});
    }
    path.pop_back();
  }
}

absl::Status FieldFlags::Apply(Message& message, FieldPlaces& places) const {
  std::vector<std::string> problems;
  for (const Flag& flag : flags_) {
    if (flag.option->count() == 0) continue;
    const FieldDescriptor& field = *flag.path.back();
    Message& holder = HolderOf(message, flag.path);
    holder.GetReflection()->ClearField(&holder, &field);
    for (std::string word : flag.option->results()) {
      // A flag without its word.
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL && word.empty()) word = "true";
      const absl::Status set = SetField(holder, field, word);
      if (!set.ok()) problems.push_back(absl::StrCat("--", field.name(), ": ", set.message()));
    }
    std::erase_if(places,
                  [&](const auto& place) { return place.first.starts_with(field.name() + "["); });
    places[field.name()] = "--" + field.name();
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

absl::Status CheckNoExtras(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name());
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::vector<std::string> extras = app.remaining();
  std::vector<std::string> problems;
  for (const std::string& extra : extras) {
    if (!extra.starts_with("-")) continue;
    const std::string flag = extra.substr(0, extra.find('='));
    const std::string nearest = DidYouMean(flag, views);
    problems.push_back(absl::StrCat(
        flag, ": unknown", nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
  }
  // A word without a flag may be an unknown flag's value, which is said already.
  if (problems.empty() && !extras.empty())
    problems.push_back(absl::StrCat("want flags, got \"", extras.front(), "\""));
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace thinwire
