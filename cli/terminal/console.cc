#include "cli/terminal/console.h"

#include "absl/strings/str_cat.h"

namespace thinwire {

void Console::Note(const std::string& text) { Write(text); }

void Console::Warning(const std::string& text) { Write(Colored("33", "warning: ") + text); }

void Console::Error(const std::string& text) { Write(Colored("31", "error: ") + text); }

void Console::Progress(const std::string& line) {
  if (!options_.terminal) {
    out_ << line << std::endl;
    return;
  }
  progress_ = line.substr(0, progress_columns());
  out_ << "\r\033[K" << progress_ << std::flush;
}

void Console::ClearProgress() {
  if (!progress_.empty()) out_ << "\r\033[K" << std::flush;
  progress_.clear();
}

void Console::Write(const std::string& text) {
  if (progress_.empty()) {
    out_ << text << std::endl;
  } else {
    out_ << "\r\033[K" << text << '\n' << progress_ << std::flush;
  }
}

std::string Console::Colored(const char* color, const std::string& word) const {
  if (!options_.color) return word;
  return absl::StrCat("\033[", color, "m", word, "\033[0m");
}

ExitCode Fail(Console& console, const absl::Status& status) {
  return Fail(console, status, ExitCodeOf(status));
}

ExitCode Fail(Console& console, const absl::Status& status, ExitCode code) {
  console.Error(std::string(status.message()));
  return code;
}

}  // namespace thinwire
