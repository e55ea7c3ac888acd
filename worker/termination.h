// Termination handles SIGTERM and SIGINT. The first signal sets a flag, so that the trainer
// finishes its step and leaves in order. A second signal ends the process at once with code 128 +
// signal.
#ifndef THINWIRE_WORKER_TERMINATION_H_
#define THINWIRE_WORKER_TERMINATION_H_

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <thread>

namespace thinwire {

// Create one object per process, at the beginning of main. It installs handlers instead of blocking
// the signals: OpenBLAS starts threads before main that do not block them, and a signal delivered
// to such a thread would kill the process.
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
