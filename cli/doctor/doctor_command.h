// `thinwire doctor`: measures what a job would run on - codecs, disk and network - and predicts the
// time of a step with each codec.
#ifndef THINWIRE_CLI_DOCTOR_DOCTOR_COMMAND_H_
#define THINWIRE_CLI_DOCTOR_DOCTOR_COMMAND_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "cli/rpc/server_flags.h"
#include "cli/terminal/console.h"
#include "common/base/exit_code.h"

namespace CLI {
class App;
}

namespace thinwire {

struct DoctorCommand {
  std::string config_file;  // the job; empty: the default job
  ConnectionFlags servers;      // servers of a job or other doctors
  std::string state_dir;    // empty: the disk is not measured
  std::string compute;  // the time that a worker computes in a step, such as 120ms; empty: unknown
  uint64_t parameters = 0;  // 0: those of the running job or of the state in `state_dir`
  bool json = false;
  std::string listen;  // host:port; empty: measures
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddDoctor(CLI::App& app, DoctorCommand& command);

// Measures and prints the report to `out`; with `listen`, prints "listening HOST:PORT" and serves
// other doctors until SIGINT or SIGTERM arrives. Prints errors to `console`. REQUIRES with
// `listen`: no other thread runs yet.
ExitCode RunDoctor(const DoctorCommand& command, Console& console, std::ostream& out);

}  // namespace thinwire

#endif  // THINWIRE_CLI_DOCTOR_DOCTOR_COMMAND_H_
