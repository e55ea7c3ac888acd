#include "client/parts/deals.h"

#include "absl/strings/str_cat.h"
#include "client/exchange/deal_book.h"
#include "client/exchange/status_report.h"
#include "common/base/status_macros.h"

namespace thinwire::client {

absl::StatusOr<std::vector<Deal>> Deals::Wait(Step step, size_t known) {
  ClientCore& core = *thread_.core;
  RETURN_IF_ERROR(thread_.WaitUntil(
      [&](absl::Duration timeout) { return core.parts().deals.Wait(step, timeout); }, "a heartbeat",
      [&] {
        core.parts().report.set_waiting(
            absl::StrCat("step ", step.value, ": waits for server 0 to deal it"));
        thread_.loop->Post([&core] { core.HeartbeatToLead(); });
      }));
  core.parts().report.set_waiting("");
  return core.parts().deals.DealsAfter(known);
}

bool Deals::IsDealt(Step step) const {
  return thread_.core->parts().deals.Wait(step, absl::ZeroDuration());
}

void Deals::BeginEpoch(uint64_t epoch, Step begin) {
  thread_.core->parts().deals.BeginEpoch(epoch, begin);
}

}  // namespace thinwire::client
