#include "experiments/plan/runner.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "experiments/plan/results.h"

namespace thinwire::lab {
namespace {

std::string NameOf(const Plan& plan, const PlannedRun& run) {
  const std::string name = CaseName(plan.experiment, run.settings);
  return absl::StrCat(name, name.empty() ? "" : ", ", "seed ", run.seed);
}

// Returns a duration such as "1h12m", "3m20s" or "7s".
std::string TimeText(absl::Duration time) {
  return absl::FormatDuration(
      absl::Trunc(time, time < absl::Hours(1) ? absl::Seconds(1) : absl::Minutes(1)));
}

// Shows the part of the runs that is finished, and the time that the others need at the speed so
// far. Not thread-safe.
class RunProgress {
 public:
  RunProgress(const Plan& plan, size_t stored_count, Clock& clock, Console& console)
      : plan_(plan),
        to_do_(static_cast<double>(plan.runs.size() - stored_count)),
        clock_(clock),
        console_(console),
        begin_(clock.Now()) {}

  // Shows that the part DONE of run number RUN is finished.
  void Show(size_t run, double done) {
    const absl::Time now = clock_.Now();
    if (shown_ && now - *shown_ < console_.interval()) return;
    shown_ = now;
    const double all = finished_ + done;
    std::string line = absl::StrFormat("run %d of %d: %.0f %%, %s", run + 1, plan_.runs.size(),
                                       100 * done, NameOf(plan_, plan_.runs[run]));
    if (all > 0) {
      const absl::Duration left = (now - begin_) * ((to_do_ - all) / all);
      absl::StrAppend(&line, "; ", TimeText(left), " left");
    }
    console_.Progress(line);
  }

  void Finish() { ++finished_; }

 private:
  const Plan& plan_;
  const double to_do_;
  Clock& clock_;
  Console& console_;
  const absl::Time begin_;
  double finished_ = 0;  // runs without a stored result that are finished now
  std::optional<absl::Time> shown_;
};

}  // namespace

absl::Status RunPlan(const Plan& plan, const RunnerOptions& options, const RunnerParts& parts,
                     Clock& clock, Console& console) {
  RETURN_IF_ERROR(PrepareFolder(options.folder, plan.experiment));
  std::vector<std::string> keys;
  std::vector<std::optional<RunResult>> stored;
  size_t stored_count = 0;
  for (const PlannedRun& run : plan.runs) {
    ASSIGN_OR_RETURN(const std::string identity, parts.identity(run.spec));
    keys.push_back(ResultKey(run.spec, identity));
    stored.push_back(StoredResult(options.folder, keys.back()));
    if (stored.back()) ++stored_count;
  }
  if (stored_count > 0) {
    console.Note(absl::StrCat(options.folder, ": has the results of ", stored_count, " of ",
                              plan.runs.size(), " runs"));
  }
  RunProgress progress(plan, stored_count, clock, console);
  std::vector<RunResult> results;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    if (stored[i]) {
      results.push_back(*std::move(stored[i]));
      continue;
    }
    const auto go_on = [&](double done) {
      progress.Show(i, done);
      return !parts.stopped();
    };
    const RunControl control = {.threads = options.threads, .progress = go_on};
    absl::StatusOr<RunResult> result = absl::CancelledError("stopped");
    if (go_on(0)) result = parts.run(plan.runs[i].spec, control);
    if (!result.ok()) {
      console.ClearProgress();
      if (absl::IsCancelled(result.status())) return result.status();
      return absl::Status(
          result.status().code(),
          absl::StrCat(NameOf(plan, plan.runs[i]), ": ", std::string(result.status().message())));
    }
    RETURN_IF_ERROR(StoreResult(options.folder, keys[i], *result));
    results.push_back(*std::move(result));
    progress.Finish();
  }
  console.ClearProgress();
  return WriteTables(options.folder, plan, results);
}

}  // namespace thinwire::lab
