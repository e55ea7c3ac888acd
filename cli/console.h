// Console: what a person reads on standard error. On a terminal the last line is the progress,
// rewritten in place; elsewhere progress is a plain line now and then. Messages go above it.
#ifndef THINWIRE_CLI_CONSOLE_H_
#define THINWIRE_CLI_CONSOLE_H_

#include <cstddef>
#include <ostream>
#include <string>

#include "absl/time/time.h"

namespace thinwire {

struct ConsoleOptions {
  bool terminal = false;
  bool color = false;    // only on a terminal, and not with NO_COLOR
  size_t columns = 100;  // a longer progress line is cut
};

// Not thread-safe.
class Console {
 public:
  // OUT outlives the console.
  Console(std::ostream& out, const ConsoleOptions& options) : out_(out), options_(options) {}

  // How often Progress is worth calling.
  absl::Duration interval() const {
    return options_.terminal ? absl::Milliseconds(500) : absl::Seconds(5);
  }

  void Note(const std::string& text);
  void Warning(const std::string& text);
  void Error(const std::string& text);
  void Progress(const std::string& line);
  // Leaves the last progress line where it is.
  void EndProgress();

 private:
  void Write(const std::string& text);
  std::string Painted(const char* color, const std::string& word) const;

  std::ostream& out_;
  const ConsoleOptions options_;
  std::string progress_;  // that is on the terminal now
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_CONSOLE_H_
