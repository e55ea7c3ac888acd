// ExitCode: what thinwire tells the shell (sysexits.h), documented in docs/configuration.md.
#ifndef THINWIRE_CLI_EXIT_CODE_H_
#define THINWIRE_CLI_EXIT_CODE_H_

namespace thinwire {

enum class ExitCode : int {
  kOk = 0,
  kUsage = 64,         // the command line
  kUnavailable = 69,   // a server or every worker was lost, or could not be started
  kPreempted = 75,     // SIGTERM: run it again
  kConfig = 78,        // the configuration
  kInterrupted = 130,  // SIGINT
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_EXIT_CODE_H_
