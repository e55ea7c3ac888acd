// ExitCode lists the exit codes of `thinwire`, `server` and `worker`. The codes are those of
// sysexits.h; after SIGINT, `thinwire` exits with 128 plus the signal's number.
// The table of docs/configuration.md documents them, and says which ends of a process are worth
// another start.
#ifndef THINWIRE_COMMON_BASE_EXIT_CODE_H_
#define THINWIRE_COMMON_BASE_EXIT_CODE_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace thinwire {

enum class ExitCode : int {
  kOk = 0,
  kUsage = 64,        // an error on the command line
  kDiverged = 65,     // training diverged: the parameters are of no use
  kUnavailable = 69,  // a peer process was lost, did not answer or could not be started
  kSoftware = 70,     // an internal error
  kIo = 74,           // a result could not be written to its file
  // Clean exit after SIGTERM, of a worker also after SIGINT; a new process can continue.
  kPreempted = 75,
  kRefused = 76,       // the job does not admit a worker of this number now, but may later
  kConfig = 78,        // an error in the configuration or in a file that the configuration names
  kInterrupted = 130,  // `thinwire` received SIGINT
};

struct NamedExitCode {
  ExitCode code;
  std::string_view name;  // as in the help and in the table of docs/configuration.md
};

// Returns all codes in ascending order.
std::span<const NamedExitCode> ExitCodes();

// Returns the text of a program's help that lists all codes.
std::string ExitCodesHelp();

// Returns the code for a process that ends with `status`: kUnavailable for Unavailable,
// DeadlineExceeded and Aborted; kSoftware for Unknown, Internal, Unimplemented, Cancelled and
// ResourceExhausted; kConfig for the other errors.
ExitCode ExitCodeOf(const absl::Status& status);

// Returns the code of a worker that ends with `status`: kRefused for AlreadyExists and OutOfRange,
// with which a server refuses the number of a worker; otherwise ExitCodeOf(status).
ExitCode ExitCodeOfWorker(const absl::Status& status);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_BASE_EXIT_CODE_H_
