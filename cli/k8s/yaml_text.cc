#include "cli/k8s/yaml_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;

// Returns whether YAML reads TEXT without quotes as the same string. Says no to many that it does.
bool IsPlain(const std::string& text) {
  if (text.empty() || !(absl::ascii_isalpha(text.front()) || text.front() == '/')) return false;
  for (const char* word : {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}) {
    if (absl::EqualsIgnoreCase(text, word)) return false;
  }
  return std::ranges::all_of(text, [](unsigned char c) {
    return absl::ascii_isalnum(c) ||
           std::string_view("/-_.=").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

std::string Scalar(const Json& value) {
  if (value.is_string() && IsPlain(value.get<std::string>())) return value.get<std::string>();
  return value.dump();  // a JSON string is a YAML string in double quotes
}

bool IsNested(const Json& value) { return value.is_structured() && !value.empty(); }

std::vector<std::string> Lines(const Json& value) {
  std::vector<std::string> lines;
  for (const auto& [key, item] : value.items()) {
    const std::string head = value.is_array() ? "- " : Scalar(key) + ":";
    if (!IsNested(item)) {
      lines.push_back(absl::StrCat(head, value.is_array() ? "" : " ", Scalar(item)));
      continue;
    }
    if (!value.is_array()) lines.push_back(head);
    // The first line of an array's item follows its hyphen.
    std::string indent = value.is_array() ? head : "  ";
    for (const std::string& line : Lines(item)) {
      lines.push_back(indent + line);
      indent = "  ";
    }
  }
  return lines;
}

}  // namespace

std::string YamlText(const Json& value) { return absl::StrJoin(Lines(value), "\n") + "\n"; }

}  // namespace thinwire
