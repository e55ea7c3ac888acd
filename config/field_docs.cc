#include "config/field_docs.h"

#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/job_proto_text.h"

namespace thinwire {

FieldDocs ParseFieldDocs(const std::string& proto) {
  FieldDocs docs;
  std::vector<std::string> open;  // the messages and enums around the current line, outermost first
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
    if (first == "message" || first == "enum") open.push_back(type);
    if (first == "}" && !open.empty()) open.pop_back();
    if ((first == "optional" || first == "repeated") && !comment.empty() && !open.empty()) {
      docs[absl::StrCat(open.back(), ".", name)] = absl::StrJoin(comment, " ");
    }
    comment.clear();
  }
  return docs;
}

FieldDocs JobFieldDocs() { return ParseFieldDocs(kJobProtoText); }

}  // namespace thinwire
