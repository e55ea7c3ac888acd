#include "tests/goldens/golden_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace thinwire {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns the lines of A that are not in B, each with PREFIX.
std::string LinesWithout(const std::string& a, const std::string& b, const std::string& prefix) {
  std::map<std::string, int> counts;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(b, '\n'))) ++counts[line];
  std::string lines;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(a, '\n'))) {
    if (counts[line]-- <= 0) absl::StrAppend(&lines, prefix, line, "\n");
  }
  return lines;
}

}  // namespace

std::string GoldenFolder() { return "tests/goldens"; }

std::string UpdatedFolder() {
  const char* folder = std::getenv("THINWIRE_GOLDENS");
  return folder == nullptr ? "" : folder;
}

std::string ReadGolden(const std::string& name) {
  return ReadText(
      absl::StrCat(UpdatedFolder().empty() ? GoldenFolder() : UpdatedFolder(), "/", name));
}

void ExpectGolden(const std::string& name, GoldenKind kind, const std::string& text) {
  const std::string golden = ReadGolden(name);
  if (golden == text) return;
  const std::string removed = LinesWithout(golden, text, "- ");
  const std::string added = LinesWithout(text, golden, "+ ");
  if (kind == GoldenKind::kPermanent && !golden.empty() && (!removed.empty() || added.empty())) {
    ADD_FAILURE() << name
                  << ": a line that earlier builds follow has changed (expected every line of the "
                     "file, got)\n"
                  << removed << added;
    return;
  }
  const std::string folder = UpdatedFolder();
  if (folder.empty()) {
    ADD_FAILURE() << name << ": differs from this build (- golden file, + this build)\n"
                  << removed << added
                  << "To accept this change, run tests/goldens/update.sh and commit " << name;
    return;
  }
  std::ofstream file(absl::StrCat(folder, "/", name), std::ios::binary);
  file << text;
  ASSERT_TRUE(file.flush()) << folder << "/" << name << ": cannot be written";
}

}  // namespace thinwire
