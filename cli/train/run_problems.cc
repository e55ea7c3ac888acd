#include "cli/train/run_problems.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// A longer error message is cut.
constexpr size_t kMaxSentence = 400;

}  // namespace

std::string SentenceOf(const std::string& message) {
  std::string line = message.substr(0, message.find('\n'));
  line = line.substr(0, line.find("; last error: "));
  return line.size() <= kMaxSentence ? line : absl::StrCat(line.substr(0, kMaxSentence), "...");
}

void RunProblems::Add(const std::string& problem) {
  const std::string sentence = SentenceOf(problem);
  console_.Error(sentence);
  list_.push_back(sentence);
}

void RunProblems::Add(const absl::Status& status) {
  if (!status.ok()) Add(std::string(status.message()));
}

void RunProblems::AddReported(const std::string& name, const std::string& reason) {
  if (reasons_.insert(reason).second) Add(absl::StrCat(name, " lost: ", reason));
}

}  // namespace thinwire
