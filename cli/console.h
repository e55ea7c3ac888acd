// Console writes messages and the progress of a run to an output stream, usually standard error. On
// a terminal, the last line shows the progress and is rewritten in place; messages appear above it.
// Otherwise, each progress report is a new line.
#ifndef THINWIRE_CLI_CONSOLE_H_
#define THINWIRE_CLI_CONSOLE_H_

#include <cstddef>
#include <ostream>
#include <string>

#include "absl/time/time.h"

namespace thinwire {

struct ConsoleOptions {
  bool terminal = false;
  bool color = false;
  size_t columns = 100;  // longer progress lines are truncated
};

// Not thread-safe.
class Console {
 public:
  // `out` must outlive the console.
  Console(std::ostream& out, const ConsoleOptions& options) : out_(out), options_(options) {}

  // Returns the interval at which the caller should call Progress().
  absl::Duration interval() const {
    return options_.terminal ? absl::Milliseconds(500) : absl::Seconds(5);
  }

  void Note(const std::string& text);
  void Warning(const std::string& text);
  void Error(const std::string& text);
  void Progress(const std::string& line);
  // Ends the progress line and leaves it on the screen.
  void EndProgress();

 private:
  void Write(const std::string& text);
  // Returns WORD, enclosed in the escape sequences of COLOR if colors are enabled.
  std::string Colored(const char* color, const std::string& word) const;

  std::ostream& out_;
  const ConsoleOptions options_;
  std::string progress_;  // the current progress line on the terminal, or empty
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_CONSOLE_H_
