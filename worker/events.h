// EventLog writes what a worker reports (proto/worker_event.proto) to an output stream, for a
// program that reads the worker's standard output. Messages for people go to the log instead.
#ifndef THINWIRE_WORKER_EVENTS_H_
#define THINWIRE_WORKER_EVENTS_H_

#include <functional>
#include <ostream>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

// Thread-safe.
class EventLog {
 public:
  // `out` must outlive the log.
  EventLog(std::ostream& out, WorkerId worker) : worker_(worker), out_(out) {}

  // Sets the event's worker, writes it as one line (proto/worker_event_json.h) and flushes.
  void Write(WorkerEvent event);

 private:
  const WorkerId worker_;
  absl::Mutex mu_;
  std::ostream& out_ ABSL_GUARDED_BY(mu_);
};

// WaitReporter writes a `waiting` event whenever the list of workers that this worker waits for has
// changed. It has a thread of its own, because the training thread is blocked in that wait. The
// thread samples the text at an interval, so it does not report a wait shorter than that.
class WaitReporter {
 public:
  // `waiting` returns the text (Client::waiting) and is called from the reporter's thread. `events`
  // must outlive the reporter.
  WaitReporter(EventLog& events, std::function<std::string()> waiting,
               absl::Duration interval = absl::Milliseconds(250));
  // Ends the thread; no event is written afterwards.
  ~WaitReporter();
  WaitReporter(const WaitReporter&) = delete;
  WaitReporter& operator=(const WaitReporter&) = delete;

 private:
  void Run();

  EventLog& events_;
  const std::function<std::string()> waiting_;
  const absl::Duration interval_;
  absl::Mutex mu_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_EVENTS_H_
