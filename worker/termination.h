// Termination: the operating system's wish that this process end (SIGTERM, SIGINT). The first one
// is noted, for the trainer to finish its step and leave in order; a second one ends the process at
// once.
#ifndef THINWIRE_WORKER_TERMINATION_H_
#define THINWIRE_WORKER_TERMINATION_H_

#include <atomic>
#include <thread>

namespace thinwire {

// Of a whole process: make one, first thing in main, before any thread is started, so that all
// threads leave these signals to its own.
class Termination {
 public:
  Termination();
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;

  // Thread-safe.
  bool requested() const { return requested_; }

 private:
  void Run();

  int signals_ = -1;  // a signalfd
  int end_ = -1;      // an eventfd, written when this object goes
  std::atomic<bool> requested_ = false;
  std::thread thread_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TERMINATION_H_
