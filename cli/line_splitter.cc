#include "cli/line_splitter.h"

#include <utility>

namespace thinwire {

std::vector<std::string> LineSplitter::Take(std::string_view bytes) {
  std::vector<std::string> lines;
  for (char c : bytes) {
    if (c != '\n') open_.push_back(c);
    if (c == '\n' || open_.size() >= kLongestLine) lines.push_back(std::exchange(open_, {}));
  }
  return lines;
}

std::vector<std::string> LineSplitter::TakeRest() {
  if (open_.empty()) return {};
  return {std::exchange(open_, {})};
}

}  // namespace thinwire
