// RunWorker runs a worker process from its command line to its end: it trains with the servers, or
// evaluates a model file (--evaluate), and reports to the page, TensorBoard's files and the trace
// that the flags ask for.
#ifndef THINWIRE_WORKER_PROCESS_WORKER_PROCESS_H_
#define THINWIRE_WORKER_PROCESS_WORKER_PROCESS_H_

#include "common/base/exit_code.h"
#include "common/time/clock.h"
#include "common/time/executor.h"
#include "config/field_flags.h"
#include "worker/process/termination.h"
#include "worker/process/worker_flags.h"

namespace thinwire {

// Returns the exit code of the process. Writes events to standard output (docs/training.md), and an
// error of the command line or the job file to standard error. THREADS makes the threads of the
// client. UNIX_CLOCK counts from the Unix epoch.
ExitCode RunWorker(const WorkerFlags& flags, const FieldFlags& field_flags,
                   Termination& termination, ExecutorFactory& threads, Clock& clock,
                   Clock& unix_clock);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_PROCESS_WORKER_PROCESS_H_
