// ExitCode lists the exit codes of `thinwire`, `server` and `worker`. The codes are those of
// sysexits.h; after SIGINT, `thinwire` exits with 128 plus the signal's number.
// docs/configuration.md and docs/training.md document the codes.
#ifndef THINWIRE_COMMON_EXIT_CODE_H_
#define THINWIRE_COMMON_EXIT_CODE_H_

#include "absl/status/status.h"

namespace thinwire {

enum class ExitCode : int {
  kOk = 0,
  kUsage = 64,        // an error on the command line
  kDiverged = 65,     // training diverged: the parameters are of no use
  kUnavailable = 69,  // a peer process was lost, did not answer or could not be started
  kSoftware = 70,     // an internal error
  // Clean exit after SIGTERM, of a worker also after SIGINT; a new process can continue.
  kPreempted = 75,
  kConfig = 78,        // an error in the configuration or in a file that the configuration names
  kInterrupted = 130,  // `thinwire` received SIGINT
};

// Returns the code for a process that ends with `status`: kUnavailable for Unavailable,
// DeadlineExceeded and Aborted; kSoftware for Unknown, Internal, Unimplemented, Cancelled and
// ResourceExhausted; kConfig for the other errors.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_EXIT_CODE_H_
