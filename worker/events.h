// EventLog writes what a worker reports (proto/worker_event.proto) to an output stream, one line
// per event, for a program that reads the worker's standard output. Messages for people go to the
// log.
#ifndef THINWIRE_WORKER_EVENTS_H_
#define THINWIRE_WORKER_EVENTS_H_

#include <ostream>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/ids.h"
#include "proto/worker_event.pb.h"
#include "proto/worker_event_json.h"

namespace thinwire {

// Thread-safe.
class EventLog {
 public:
  // `out` must outlive the log.
  EventLog(std::ostream& out, WorkerId worker) : worker_(worker), out_(out) {}

  // Sets the event's worker, writes its line and flushes the stream.
  void Write(WorkerEvent event) {
    event.set_worker(worker_.value);
    const std::string line = PrintWorkerEvent(event);
    absl::MutexLock lock(&mu_);
    out_ << line << std::endl;
  }

 private:
  const WorkerId worker_;
  absl::Mutex mu_;
  std::ostream& out_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_EVENTS_H_
