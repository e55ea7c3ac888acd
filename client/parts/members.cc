#include "client/parts/members.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/exchange/deal_book.h"
#include "client/exchange/job_news.h"
#include "client/exchange/status_report.h"
#include "client/exchange/worker_news.h"
#include "common/base/status_macros.h"
#include "proto/job.pb.h"

namespace thinwire::client {

std::vector<WorkerId> Members::live() const { return thread_.core->parts().job_news.live(); }

bool Members::retired() const { return thread_.core->parts().deals.retired(); }

absl::Status Members::Refresh() {
  const JobNews& news = thread_.core->parts().job_news;
  // The next reply may belong to a heartbeat that was sent before this call.
  const uint64_t count = news.lead_reply_count() + 2;
  RETURN_IF_ERROR(thread_.WaitUntil(
      [&](absl::Duration timeout) { return news.WaitForLeadReplies(count, timeout); },
      "a heartbeat", [] {}));
  return thread_.progress.failure();
}

absl::StatusOr<WorkerId> Members::Evaluator() {
  ClientCore& core = *thread_.core;
  core.parts().worker_news.AskForEvaluator();
  std::optional<WorkerId> evaluator;
  RETURN_IF_ERROR(thread_.WaitUntil(
      [&](absl::Duration timeout) {
        evaluator = core.parts().job_news.WaitForEvaluator(timeout);
        return evaluator.has_value();
      },
      "a heartbeat", [&] { thread_.loop->Post([&core] { core.HeartbeatToLead(); }); }));
  RETURN_IF_ERROR(thread_.progress.failure());
  return *evaluator;
}

void Members::ReportTest(const ModelTest& test) {
  thread_.core->parts().worker_news.set_test(test);
  thread_.loop->Post([this] { thread_.core->HeartbeatToLead(); });
}

void Members::ReportProgress(WorkerProgress progress) {
  if (const auto& job = thread_.options.config; job.has_value()) {
    const Compression& codecs = job->compression();
    progress.set_push(Compression::Codec::Value_Name(codecs.push()));
    progress.set_pull(Compression::Codec::Value_Name(codecs.pull()));
    for (const GroupCodec& choice : thread_.core->parts().report.choices()) {
      absl::StrAppend(progress.mutable_push(), ", ", choice.group, " ", choice.codec);
    }
  }
  progress.set_page(thread_.options.page);
  thread_.core->parts().worker_news.set_progress(std::move(progress));
}

absl::Status Members::WaitUntilAlone() {
  StatusReport& report = thread_.core->parts().report;
  const JobNews& news = thread_.core->parts().job_news;
  const ClientOptions& options = thread_.options;
  RETURN_IF_ERROR(thread_.WaitUntil(
      [&](absl::Duration timeout) {
        return news.WaitUntilAlone(options.worker, options.server_count, timeout);
      },
      "other workers",
      [&] {
        const std::vector<WorkerId> others = news.LiveExcept(options.worker);
        if (others.empty()) return;  // some server has not answered a heartbeat yet
        report.set_waiting(absl::StrCat("waits until worker", others.size() == 1 ? " " : "s ",
                                        absl::StrJoin(others, ", ", absl::StreamFormatter()),
                                        others.size() == 1 ? " has left" : " have left"));
      }));
  report.set_waiting("");
  return thread_.progress.failure();
}

}  // namespace thinwire::client
