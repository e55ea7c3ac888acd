// StopRequests ends the waiting of a server's main thread:
//
//   stop signal            the process ends with the code of the constructor
//   Drain()                the process ends with code 0
//   Fail()                 the process ends with the code of the failure
//   Restart()              the job is made anew in this process
//
// A worker's Termination differs: its main thread trains, so it needs a thread that waits.
#ifndef THINWIRE_SERVER_PROCESS_STOP_REQUESTS_H_
#define THINWIRE_SERVER_PROCESS_STOP_REQUESTS_H_

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "absl/status/status.h"
#include "common/base/exit_code.h"

namespace thinwire {

// Create one object per process. Handles stop signals (common/base/process_setup.h) from its
// construction on, so that they do not kill a server during its start.
class StopRequests {
 public:
  explicit StopRequests(ExitCode signal_code = ExitCode::kOk);
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

  // Blocks until the first request that has not ended an earlier call. Returns whether it is to
  // make the job anew. Only the main thread calls it.
  bool WaitForRestart();

  // Return the status and the exit code of the end. REQUIRES: WaitForRestart() has returned false.
  const absl::Status& failure() const { return failure_; }
  ExitCode code() const { return code_; }

  // FAILURE is not OK. Thread-safe.
  void Fail(const absl::Status& failure, ExitCode code);
  // Thread-safe.
  void Drain();
  // Thread-safe.
  void Restart();

 private:
  void Stop();

  // The requests are tasks of this context, which only WaitForRestart() runs.
  boost::asio::io_context io_;
  boost::asio::signal_set signals_{io_};
  bool stopped_ = false;
  absl::Status failure_;
  ExitCode code_ = ExitCode::kOk;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROCESS_STOP_REQUESTS_H_
