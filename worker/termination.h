// Termination: the operating system's wish that this process end (SIGTERM, SIGINT). The first one
// is noted, for the trainer to finish its step and leave in order; a second one ends the process at
// once.
#ifndef THINWIRE_WORKER_TERMINATION_H_
#define THINWIRE_WORKER_TERMINATION_H_

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <thread>

namespace thinwire {

// Of a whole process: make one, first thing in main. It catches signals rather than block them:
// OpenBLAS starts its threads before main, and a signal that they do not block would kill.
class Termination {
 public:
  Termination();
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;

  // Thread-safe.
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
