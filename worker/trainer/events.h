// EventPrinter writes the events of a worker (proto/worker_event.proto) to an output stream,
// normally the worker's standard output, for programs that read it. Messages for people go to the
// log instead.
#ifndef THINWIRE_WORKER_TRAINER_EVENTS_H_
#define THINWIRE_WORKER_TRAINER_EVENTS_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

// Thread-safe.
class EventPrinter {
 public:
  // `out`, the stream to which events are written, must outlive the EventPrinter. `observer`, if
  // set, is called with each event on the thread that writes the event. With `every` above 1, only
  // the first of each `every` step events is written, and no waiting event, whose text is in the step
  // events too.
  EventPrinter(std::ostream& out, WorkerId worker,
               std::function<void(const WorkerEvent&)> observer = nullptr, uint32_t every = 1)
      : worker_(worker), observer_(std::move(observer)), every_(every), out_(out) {}

  // Sets the event's worker number, writes the event as one line (proto/worker_event_json.h), and
  // flushes the stream.
  void Write(WorkerEvent event);

 private:
  // Returns whether EVENT is written.
  bool Counts(const WorkerEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const WorkerId worker_;
  const std::function<void(const WorkerEvent&)> observer_;
  const uint32_t every_;
  absl::Mutex mu_;
  uint64_t step_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::ostream& out_ ABSL_GUARDED_BY(mu_);
};

// WaitReporter writes a `waiting` event whenever the list of workers that this worker waits for has
// changed. WaitReporter uses a thread of its own, because the training thread is blocked during a
// wait. The thread samples the list at fixed intervals, so waits that are shorter than an interval
// may not be reported.
class WaitReporter {
 public:
  // `waiting` returns the list of workers as text (Client::waiting). The reporter's thread calls
  // `waiting` once per `interval`. `events` must outlive the reporter.
  WaitReporter(EventPrinter& events, std::function<std::string()> waiting,
               absl::Duration interval = absl::Milliseconds(250));
  // Ends the reporter's thread. No event is written afterwards.
  ~WaitReporter();
  WaitReporter(const WaitReporter&) = delete;
  WaitReporter& operator=(const WaitReporter&) = delete;

 private:
  void Run();

  EventPrinter& events_;
  const std::function<std::string()> waiting_;
  const absl::Duration interval_;
  absl::Mutex mu_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_EVENTS_H_
