// Progress formats the line that shows the progress of a training run. Example:
//
//   step 412/938  1m20s left  train loss 0.412  accuracy 0.874  2310 examples/s
//
// A longer line also has the pushed bytes and the staleness; a line of a run with lost or waiting
// workers has these first.
//
// In the sync and backup modes, all workers are at nearly the same step, so the line shows the
// largest reported step. (The reports of different workers differ in age by up to 200 ms, so their
// steps may differ slightly.) In the ssp and async modes, the line shows the range of the workers'
// steps.
#ifndef THINWIRE_CLI_TRAIN_PROGRESS_H_
#define THINWIRE_CLI_TRAIN_PROGRESS_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "cli/train/run_record.h"

namespace thinwire {

// Not thread-safe.
class Progress {
 public:
  // `by_round` is true if the job's mode is sync or backup.
  explicit Progress(bool by_round) : by_round_(by_round) {}

  // Returns the progress line at time `now`. Omits figures that make the line longer than
  // `columns`. `staleness` is the mean staleness of the run so far, if known. The examples per
  // second in the line are an average over the last ten seconds; the time left follows from the
  // average of the run.
  std::string Line(const RunRecord& record, std::optional<double> staleness, absl::Time now,
                   size_t columns);

 private:
  double Rate(uint64_t examples, absl::Time now);
  // Returns the time until the last step at the average speed so far, or nullopt if it is not
  // known.
  std::optional<absl::Duration> TimeLeft(uint64_t step, uint64_t planned_steps, absl::Time now);

  const bool by_round_;
  std::deque<std::pair<absl::Time, uint64_t>> examples_;  // (time, total examples of all workers)
  std::optional<std::pair<absl::Time, uint64_t>> first_;  // the first known (time, step)
};

// Returns `bytes` as text, such as "81.2 MB". 1 MB is 10^6 bytes.
std::string BytesText(uint64_t bytes);
// Returns the ratio of `raw`, a size in bytes as fp32, to `encoded`, the size in bytes after
// encoding, as text, such as "4.0x smaller than fp32". Returns "" if `encoded` is 0 or not at least
// 5% smaller than `raw`.
std::string SavingText(uint64_t raw, uint64_t encoded);

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_PROGRESS_H_
