#include "worker/trainer/events.h"

#include <utility>

#include "proto/worker_event_json.h"

namespace thinwire {

void EventPrinter::Write(WorkerEvent event) {
  event.set_worker(worker_.value);
  if (observer_) observer_(event);
  const std::string line = PrintWorkerEvent(event);
  absl::MutexLock lock(&mu_);
  out_ << line << std::endl;
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
