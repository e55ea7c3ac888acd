// Termination handles SIGTERM and SIGINT. The first signal sets a flag, so that the trainer
// finishes its step and leaves the job in order. A second signal ends the process at once with the
// exit code 128 + signal number.
#ifndef THINWIRE_WORKER_TERMINATION_H_
#define THINWIRE_WORKER_TERMINATION_H_

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <thread>

namespace thinwire {

// Create one object per process, at the beginning of main. A Termination installs signal handlers.
// It does not block the signals, because OpenBLAS starts threads before main that do not block
// them, and a signal to such a thread would kill the process.
class Termination {
 public:
  Termination();
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;

  // Returns true once a signal has arrived. Thread-safe.
  bool requested() const { return requested_; }

 private:
  void Await();

  boost::asio::io_context io_;
  boost::asio::signal_set signals_;
  std::atomic<bool> requested_ = false;
  std::thread thread_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TERMINATION_H_
