#include "client/parts/draining.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "client/encode/push_encoder.h"
#include "client/exchange/exchange.h"
#include "client/exchange/status_report.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"

namespace thinwire::client {

absl::StatusOr<std::optional<Step>> Draining::AwaitCommonStop(absl::Duration longest) {
  RETURN_IF_ERROR(thread_.CheckStepIsComplete());
  const absl::Time end = std::min(thread_.threads.Now() + longest,
                                  thread_.progress.drain_end() - thread_.options.drain / 2);
  // A failure does not end the wait for a heartbeat, so each wait is short.
  std::optional<Step> stop;
  do {
    RETURN_IF_ERROR(thread_.progress.failure());
    thread_.ReportStop(thread_.next);
    stop = thread_.core->parts().job_news.WaitForStopStep(
        std::min(thread_.options.heartbeat_interval, end - thread_.threads.Now()));
  } while (!stop.has_value() && thread_.threads.Now() < end);
  if (stop.has_value()) thread_.progress.Drain();
  return stop;
}

absl::StatusOr<bool> Draining::Start(absl::Duration compute_time, bool has_unpushed) {
  absl::StatusOr<double> norm;
  std::optional<double> goodput;
  thread_.loop->Run([&] {
    norm = thread_.core->parts().encoder.ResidualNorm();
    goodput = thread_.core->parts().meter.goodput();
  });
  RETURN_IF_ERROR(norm.status());
  if (*norm == 0 && !has_unpushed && !thread_.ReturnsPending()) return false;
  const absl::Duration left = thread_.progress.drain_end() - thread_.threads.Now() - compute_time;
  const auto fits = [&](size_t bytes_per_value) {
    const auto bytes = static_cast<double>(thread_.partition.value_count() * bytes_per_value);
    return left > (goodput.has_value() ? absl::Seconds(bytes / *goodput) : absl::ZeroDuration());
  };
  if (!fits(sizeof(uint16_t))) return false;
  const CodecId codec = fits(sizeof(float)) ? CodecId::kFp32 : CodecId::kBf16;
  thread_.loop->Run([&] { thread_.core->parts().encoder.SendDense(codec); });
  thread_.progress.Drain();
  return true;
}

absl::StatusOr<double> Draining::ResidualNorm() {
  if (thread_.ReturnsPending()) RETURN_IF_ERROR(thread_.progress.WaitAll());
  absl::StatusOr<double> norm;
  thread_.loop->Run([&] {
    ClientCore& core = *thread_.core;
    if (core.parts().encoder.may_finish()) {
      norm = absl::FailedPreconditionError("the last step is still being encoded");
    } else {
      norm = core.parts().encoder.ResidualNorm();
    }
    if (norm.ok()) *norm += core.exchange().UnjudgedNorm();
  });
  return norm;
}

}  // namespace thinwire::client
