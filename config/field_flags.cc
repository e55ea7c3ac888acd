#include "config/field_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "config/applicability.h"
#include "config/field_docs.h"
#include "config/recipes.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;

// If an enum has at most this number of values, the help shows them beside the flag, otherwise in
// the description of the flag.
constexpr size_t kMaxListedValues = 6;

std::string Names(const FieldDescriptor& field, const char* separator) {
  const std::vector<std::string_view> names = EnumNames(field);
  return absl::StrJoin(std::vector<std::string>(names.begin(), names.end()), separator);
}

std::string TypeName(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (field.name().ends_with("_dir")) return "DIR";
      return field.name().ends_with("_file") ? "FILE" : "TEXT";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "[true|false]";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "NUMBER";
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumNames(field).size() <= kMaxListedValues ? Names(field, "|") : "NAME";
    default:
      return "COUNT";
  }
}

std::string Describe(const FieldDescriptor& field, const FieldDocs& docs) {
  const auto doc = docs.find(absl::StrCat(field.containing_type()->name(), ".", field.name()));
  std::vector<std::string> sentences;
  if (doc != docs.end()) sentences.push_back(doc->second);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM &&
      EnumNames(field).size() > kMaxListedValues) {
    sentences.push_back(absl::StrCat("One of: ", Names(field, ", "), "."));
  }
  if (field.name() == "recipe") sentences.push_back(RecipesText());
  const std::string value = DefaultText(field);
  if (!value.empty()) sentences.push_back(absl::StrCat("Default: ", value));
  return absl::StrJoin(sentences, " ");
}

}  // namespace

std::string EnvironmentName(std::string_view flag) {
  return absl::StrCat("THINWIRE_", absl::AsciiStrToUpper(std::string(flag)));
}

FieldFlags::FieldFlags(CLI::App& app, const std::vector<std::string_view>& only) : app_(app) {
  const FieldDocs docs = JobFieldDocs();
  for (Field& field : Settings(*JobConfig::descriptor())) {
    if (!only.empty() && std::ranges::find(only, field.name()) == only.end()) continue;
    const FieldDescriptor& descriptor = field.descriptor();
    // The callback of the flag parser accepts every word as a value. Apply converts the words,
    // because its error messages name the expected values.
    CLI::Option* option = app.add_option(
        "--" + field.name(), [](const CLI::results_t&) { return true; },
        Describe(descriptor, docs));
    option->type_name(TypeName(descriptor))->type_size(1);
    option->envname(EnvironmentName(field.name()));
    if (descriptor.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      option->expected(0, 1);
    } else {
      option->expected(1);
    }
    option->multi_option_policy(descriptor.is_repeated() ? CLI::MultiOptionPolicy::TakeAll
                                                         : CLI::MultiOptionPolicy::TakeLast);
    option->group(field.path.size() == 1 ? "Job" : descriptor.containing_type()->name());
    flags_.push_back({std::move(field), option});
  }
}

absl::Status FieldFlags::Apply(JobConfig& config, FieldPlaces& places) const {
  std::vector<std::string> problems;
  const std::vector<CLI::Option*>& on_command_line = app_.parse_order();
  for (const auto& [field, option] : flags_) {
    if (option->count() == 0) continue;
    const bool from_flag = std::ranges::find(on_command_line, option) != on_command_line.end();
    const std::string place = from_flag ? "--" + field.name() : EnvironmentName(field.name());
    std::vector<std::string> words = option->results();
    // The environment variable of a repeated field contains all values of the field, separated by
    // commas.
    if (!from_flag && field.descriptor().is_repeated()) {
      words = absl::StrSplit(words.front(), ',');
    }
    if (field.descriptor().cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      std::ranges::replace(words, std::string(), std::string("true"));  // the flag without a value
    }
    std::ranges::move(ReplaceValue(config, field, words, place, places),
                      std::back_inserter(problems));
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  DropReplacedFields(config, places);
  ExpandRecipe(config, places);
  return absl::OkStatus();
}

}  // namespace thinwire
