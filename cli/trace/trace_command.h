// `thinwire trace merge`: combines the trace files of a job's processes (common/time/trace.h) into
// one file, whose times are those of the lead's clock.
//
//   worker 3 knows the offset to server 0                   worker 3 -> server 0
//   worker 3 knows the offsets to server 0 and server 1     server 1 -> worker 3 -> server 0
//
// The chain with the shortest sum of round trips counts. The error of a time is at most half of
// this sum.
#ifndef THINWIRE_CLI_TRACE_TRACE_COMMAND_H_
#define THINWIRE_CLI_TRACE_TRACE_COMMAND_H_

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/exit_code.h"

namespace CLI {
class App;
}

namespace thinwire {

struct TraceCommand {
  std::string out;
  std::vector<std::string> files;
};

// Adds the command with its subcommand merge to APP. COMMAND must outlive APP.
CLI::App* AddTrace(CLI::App& app, TraceCommand& command);

// Runs `thinwire trace merge`: prints a line to OUT, or the error to ERR.
ExitCode RunTraceMerge(const TraceCommand& command, std::ostream& out, std::ostream& err);

struct MergedTrace {
  size_t process_count = 0;
  std::vector<std::string>
      unaligned;  // processes without a chain to server 0; their times are those of their own clocks
};

// Merges FILES and writes the file PATH. Errors: InvalidArgument for a file that is no trace of a
// process; errors of the file system, with the path.
absl::StatusOr<MergedTrace> MergeTraces(const std::vector<std::string>& files,
                                        const std::string& path);

// Returns a line for people, such as "run.json: the trace of 4 processes".
std::string TextOf(const MergedTrace& merged, const std::string& path);

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRACE_TRACE_COMMAND_H_
