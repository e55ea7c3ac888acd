// Console writes messages and the progress of a run to an output stream, usually standard error. On
// a terminal, the last line shows the progress and is rewritten in place; messages appear above it.
// Otherwise, each progress report is a new line.
#ifndef THINWIRE_CLI_TERMINAL_CONSOLE_H_
#define THINWIRE_CLI_TERMINAL_CONSOLE_H_

#include <cstddef>
#include <limits>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/exit_code.h"

namespace thinwire {

struct ConsoleOptions {
  bool terminal = false;
  bool color = false;
  size_t columns = 80;  // width of the terminal
};

// Not thread-safe.
class Console {
 public:
  // The stream `out` must outlive the Console.
  Console(std::ostream& out, const ConsoleOptions& options) : out_(out), options_(options) {}

  // Returns the interval at which the caller should call Progress().
  absl::Duration interval() const {
    return options_.terminal ? absl::Milliseconds(500) : absl::Seconds(5);
  }
  // Returns the largest length of a progress line. On a terminal, the last column stays free,
  // because some terminals begin a new line after it.
  size_t progress_columns() const {
    return options_.terminal ? options_.columns - 1 : std::numeric_limits<size_t>::max();
  }

  void Note(const std::string& text);
  void Warning(const std::string& text);
  void Error(const std::string& text);
  // Shows LINE. A terminal shows its first progress_columns() characters.
  void Progress(const std::string& line);
  // Removes the progress line from the screen.
  void ClearProgress();

 private:
  void Write(const std::string& text);
  // Returns `word`. If colors are enabled, encloses it in the terminal escape sequences for
  // `color`.
  std::string Colored(const char* color, const std::string& word) const;

  std::ostream& out_;
  const ConsoleOptions options_;
  std::string progress_;  // the current progress line on the terminal, or empty
};

// Shows the message of the error STATUS and returns CODE; without CODE, the exit code of the error.
ExitCode Fail(Console& console, const absl::Status& status);
ExitCode Fail(Console& console, const absl::Status& status, ExitCode code);

}  // namespace thinwire

#endif  // THINWIRE_CLI_TERMINAL_CONSOLE_H_
