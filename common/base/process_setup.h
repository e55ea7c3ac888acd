// Settings of a whole process, which every program of thinwire makes at the beginning of main.
#ifndef THINWIRE_COMMON_BASE_PROCESS_SETUP_H_
#define THINWIRE_COMMON_BASE_PROCESS_SETUP_H_

#include <vector>

namespace thinwire {

// Opens /dev/null in place of standard input, output or error if it is closed. Otherwise, a file or
// socket that is opened later would get the file descriptor of standard input, output or error.
void FillStandardFiles();

// Makes a write to a pipe or socket without a reader an error of the write. Otherwise, the signal
// SIGPIPE would end a process when the reader of its log ends.
void IgnoreBrokenPipes();

// Switches off the search for deadlocks in the locks of Abseil, gRPC's among them, which Debian's
// build of Abseil makes at every lock.
void SkipDeadlockSearch();

// Returns the signals that ask a process to stop in order: SIGINT, SIGTERM, and SIGHUP, which a
// closed terminal sends. Without SIGHUP if the process ignores it, as under nohup.
std::vector<int> StopSignals();

}  // namespace thinwire

#endif  // THINWIRE_COMMON_BASE_PROCESS_SETUP_H_
