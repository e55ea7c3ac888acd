#include "cli/field_docs.h"

#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/config_proto_text.h"

namespace thinwire {

FieldDocs ParseFieldDocs(const std::string& proto) {
  FieldDocs docs;
  std::string message;
  std::vector<std::string> comment;
  std::istringstream lines(proto);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, type, name;
    words >> first >> type >> name;
    if (first == "//") {
      const size_t text = line.find("//") + 2;
      comment.emplace_back(absl::StripAsciiWhitespace(line.substr(text)));
      continue;
    }
    if (first == "message") message = type;
    if ((first == "optional" || first == "repeated") && !comment.empty()) {
      docs[absl::StrCat(message, ".", name)] = absl::StrJoin(comment, " ");
    }
    comment.clear();
  }
  return docs;
}

FieldDocs ConfigFieldDocs() { return ParseFieldDocs(kConfigProtoText); }

}  // namespace thinwire
