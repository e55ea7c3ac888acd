#include "client/parts/members.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/exchange/deal_book.h"
#include "client/exchange/status_report.h"
#include "common/base/status_macros.h"

namespace thinwire::client {

std::vector<WorkerId> Members::live() const { return thread_.core->report().live(); }

bool Members::retired() const { return thread_.core->deals().retired(); }

absl::Status Members::Refresh() {
  StatusReport& report = thread_.core->report();
  // The next reply may belong to a heartbeat that was sent before this call.
  const uint64_t count = report.lead_report_count() + 2;
  RETURN_IF_ERROR(thread_.WaitUntil(
      [&](absl::Duration timeout) { return report.WaitForLeadReports(count, timeout); },
      "a heartbeat", [] {}));
  return thread_.progress.failure();
}

absl::StatusOr<WorkerId> Members::Evaluator() {
  ClientCore& core = *thread_.core;
  core.report().AskForEvaluator();
  while (!core.report().evaluator().has_value()) {
    thread_.loop->Run([&core] { core.HeartbeatToLead(); });
    RETURN_IF_ERROR(Refresh());
  }
  return *core.report().evaluator();
}

void Members::ReportTest(const ModelTest& test) {
  thread_.core->report().set_test(test);
  thread_.loop->Post([this] { thread_.core->HeartbeatToLead(); });
}

absl::Status Members::WaitUntilAlone() {
  StatusReport& report = thread_.core->report();
  const ClientOptions& options = thread_.options;
  RETURN_IF_ERROR(thread_.WaitUntil(
      [&](absl::Duration timeout) {
        return report.WaitUntilAlone(options.worker, options.server_count, timeout);
      },
      "other workers",
      [&] {
        const std::vector<WorkerId> others = report.LiveExcept(options.worker);
        if (others.empty()) return;  // some server has not answered a heartbeat yet
        report.set_waiting(absl::StrCat("waits until worker", others.size() == 1 ? " " : "s ",
                                        absl::StrJoin(others, ", ", absl::StreamFormatter()),
                                        others.size() == 1 ? " has left" : " have left"));
      }));
  report.set_waiting("");
  return thread_.progress.failure();
}

}  // namespace thinwire::client
