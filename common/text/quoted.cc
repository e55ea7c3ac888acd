#include "common/text/quoted.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace thinwire {

namespace {

constexpr size_t kMostCharacters = 200;

}  // namespace

std::string Shortened(absl::string_view text) {
  if (text.size() <= kMostCharacters) return std::string(text);
  return absl::StrCat(text.substr(0, kMostCharacters), "...");
}

std::string Quoted(absl::string_view text) {
  // One character more than is shown tells Shortened() to mark the cut. The text is cut before it
  // is escaped, because it may have megabytes.
  return absl::StrCat("\"", Shortened(absl::CEscape(text.substr(0, kMostCharacters + 1))), "\"");
}

}  // namespace thinwire
