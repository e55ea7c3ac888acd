// `thinwire checkpoint now` and `thinwire checkpoint restore --addresses`: the checkpoints of a
// running job.
#ifndef THINWIRE_CLI_CHECKPOINT_CHECKPOINT_CALLS_H_
#define THINWIRE_CLI_CHECKPOINT_CHECKPOINT_CALLS_H_

#include <cstdint>
#include <ostream>

#include "absl/time/time.h"
#include "cli/rpc/server_flags.h"
#include "common/base/exit_code.h"
#include "config/command_flags.h"

namespace thinwire {

struct CheckpointCalls {
  ConnectionFlags servers;   // server 0 makes the checkpoint or sends the others back
  double timeout = 300;  // seconds
};

// Adds --addresses, --credentials, --insecure and --timeout, and returns --addresses. CALLS must
// outlive COMMAND.
Flag AddCheckpointCalls(CommandFlags& command, CheckpointCalls& calls);

// Asks the lead, server 0, for a checkpoint of all servers. When they are on disk, prints their
// step, or the range of the shards' steps, to `out`. Prints errors to `err`. Returns kConfig if the
// job makes no such checkpoints, kUnavailable if a server does not answer or has no checkpoint
// within the timeout, and kIo if a server cannot write it.
ExitCode SaveCheckpointNow(const CheckpointCalls& calls, std::ostream& out, std::ostream& err);

// Asks the lead to send all servers back to STEP, and blocks until they have gone back. Prints the
// step and the new generation to `out` and errors to `err`. Returns kConfig if the job or the step
// does not allow it, and kUnavailable if a server does not answer or has not gone back within the
// timeout. Asks every POLL whether they have gone back.
ExitCode RestoreRunning(const CheckpointCalls& calls, uint64_t step, std::ostream& out,
                        std::ostream& err, absl::Duration poll = absl::Milliseconds(200));

}  // namespace thinwire

#endif  // THINWIRE_CLI_CHECKPOINT_CHECKPOINT_CALLS_H_
