// ExitCode lists the exit codes of `thinwire`, `server` and `worker`. They are those of sysexits.h,
// and 128 plus the signal's number for SIGINT. docs/configuration.md and docs/training.md describe
// them to users.
#ifndef THINWIRE_COMMON_EXIT_CODE_H_
#define THINWIRE_COMMON_EXIT_CODE_H_

#include "absl/status/status.h"

namespace thinwire {

enum class ExitCode : int {
  kOk = 0,
  kUsage = 64,         // an error on the command line
  kUnavailable = 69,   // a peer process was lost, did not answer or could not be started
  kSoftware = 70,      // an internal error
  kPreempted = 75,     // left in order after SIGTERM (worker: or SIGINT); run it again to continue
  kConfig = 78,        // the configuration, or a file that it names
  kInterrupted = 130,  // thinwire: SIGINT
};

// Returns the code for a process that ends with `status`: kUnavailable for Unavailable,
// DeadlineExceeded and Aborted; kSoftware for Unknown, Internal, Unimplemented, Cancelled and
// ResourceExhausted; kConfig for the other errors.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_EXIT_CODE_H_
