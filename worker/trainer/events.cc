#include "worker/trainer/events.h"

#include <utility>

#include "proto/worker_event_json.h"

namespace thinwire {

void EventPrinter::Write(WorkerEvent event) {
  event.set_worker(worker_.value);
  if (observer_) observer_(event);
  absl::MutexLock lock(&mu_);
  if (Counts(event)) out_ << PrintWorkerEvent(event) << std::endl;
}

bool EventPrinter::Counts(const WorkerEvent& event) {
  if (every_ == 1 || !(event.has_step() || event.has_waiting())) return true;
  return event.has_step() && step_count_++ % every_ == 0;
}

WaitReporter::WaitReporter(EventPrinter& events, std::function<std::string()> waiting,
                           absl::Duration interval)
    : events_(events),
      waiting_(std::move(waiting)),
      interval_(interval),
      thread_([this] { Run(); }) {}

WaitReporter::~WaitReporter() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  thread_.join();
}

void WaitReporter::Run() {
  std::string reported;
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (mu_.AwaitWithTimeout(absl::Condition(&stop_), interval_)) return;
    }
    std::string text = waiting_();
    if (text == reported) continue;
    WorkerEvent event;
    event.mutable_waiting()->set_text(text);
    events_.Write(std::move(event));
    reported = std::move(text);
  }
}

}  // namespace thinwire
