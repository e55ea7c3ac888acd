#include "client/parts/core_thread.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/exchange/status_report.h"
#include "common/base/status_macros.h"

namespace thinwire::client {

namespace {

// Leaves a part of DRAIN for the calls of Leave, which take up to two seconds.
absl::Duration DrainOfSteps(absl::Duration drain) {
  return drain - std::min(absl::Seconds(2), drain / 2);
}

}  // namespace

CoreThread::CoreThread(ClientOptions options, Partition partition, Transport& transport,
                       ExecutorFactory& threads, const Device* device)
    : options(std::move(options)),
      partition(std::move(partition)),
      transport(transport),
      threads(threads),
      device(device),
      stop(std::make_shared<StopSignal>()),
      progress(this->partition, DrainOfSteps(this->options.drain), threads),
      loop(threads.Make()) {}

CoreThread::~CoreThread() {
  loop->Run([this] {
    if (core != nullptr) core->StopExchange();
  });
  loop->Stop();
}

absl::Status CoreThread::Init() {
  ASSIGN_OR_RETURN(core, ClientCore::Make(options, partition, transport, loop, progress, device));
  absl::Status used;
  if (device != nullptr) loop->Run([&] { used = device->Use(); });
  return used;
}

absl::Status CoreThread::WaitUntil(absl::FunctionRef<bool(absl::Duration)> ready,
                                   absl::string_view about, absl::FunctionRef<void()> between) {
  // Failures other than a rollback, and Stop, do not end the wait for a heartbeat, so each wait is
  // short.
  absl::Duration timeout;
  while (!ready(timeout)) {
    RETURN_IF_ERROR(progress.failure());
    if (stop->is_set())
      return absl::CancelledError(absl::StrCat("stopped while waiting for ", about));
    between();
    timeout = options.heartbeat_interval;
  }
  return absl::OkStatus();
}

absl::Status CoreThread::CountWait(int field_number, absl::FunctionRef<absl::Status()> wait) {
  StatusReport& report = core->parts().report;
  const absl::Time begin = threads.Now();
  report.BeginWait();
  absl::Status result = wait();
  report.EndWait(threads.Now() - begin, field_number);
  return result;
}

void CoreThread::ReportStop(Step step) {
  core->parts().worker_news.set_stops_before(step);
  loop->Post([this] { core->HeartbeatToLead(); });
}

bool CoreThread::ReturnsPending() {
  bool pending = false;
  loop->Run([&] { pending = core->joined() && core->exchange().returns_pending(); });
  return pending;
}

absl::Status CoreThread::CheckStepIsComplete() const {
  if (!step_is_partial) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("step ", next.value, ": not all pushes have a verdict"));
}

}  // namespace thinwire::client
