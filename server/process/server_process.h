// RunServer runs a server process from its checked settings to its end:
//
//   open the state, the trace and the admin page
//   +-> make the job, which recovers its state; listen; serve until a StopRequest
//   |   stop the job, then the listener
//   +-- after a rollback
//   write the trace
#ifndef THINWIRE_SERVER_PROCESS_SERVER_PROCESS_H_
#define THINWIRE_SERVER_PROCESS_SERVER_PROCESS_H_

#include "common/base/exit_code.h"
#include "common/memory/huge_page_arena.h"
#include "common/time/clock.h"
#include "server/process/process_flags.h"

namespace thinwire {

// Returns the exit code of the process. Prints "listening HOST:PORT" to standard output when the
// server is ready, and the error with which the process ends to standard error. UNIX_CLOCK counts
// from the Unix epoch. MEMORY allocates the parameters and is never destroyed, because a gRPC
// thread may release sent parameters after RunServer() has returned. Calls of gRPC may log until
// then, too.
ExitCode RunServer(const ServerFlags& flags, Clock& clock, Clock& unix_clock,
                   HugePageArena& memory);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROCESS_SERVER_PROCESS_H_
