// Progress formats the line that shows the progress of a training run. Example:
//
//   step 412  epoch 1  loss 0.412  accuracy 0.8740  2310 examples/s
//       pushed 81.2 MB (4.0x smaller than fp32)  staleness 1.3
//
// (wrapped here).
//
// In the sync and backup modes, all workers are at nearly the same step, so the line shows the
// largest reported step. (Reports of different workers differ in age by up to 200 ms.) In the ssp
// and async modes, the line shows the range of the workers' steps.
#ifndef THINWIRE_CLI_PROGRESS_H_
#define THINWIRE_CLI_PROGRESS_H_

#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "cli/run_record.h"

namespace thinwire {

// Not thread-safe.
class Progress {
 public:
  // `by_round`: whether the mode is sync or backup.
  explicit Progress(bool by_round) : by_round_(by_round) {}

  // Returns the progress line at time `now`. `staleness` is the mean staleness of the run so far,
  // if known. The examples per second in the line are an average over the last ten seconds.
  std::string Line(const RunRecord& record, std::optional<double> staleness, absl::Time now);

 private:
  double Rate(uint64_t examples, absl::Time now);

  const bool by_round_;
  std::deque<std::pair<absl::Time, uint64_t>> examples_;  // (time, total examples of all workers)
};

// Returns `bytes` as text, such as "81.2 MB". 1 MB is 10^6 bytes.
std::string BytesText(uint64_t bytes);
// Returns the ratio of two sizes in bytes as text, such as "4.0x smaller than fp32". Returns "" if
// `encoded` is 0 or not at least 5% smaller than `raw`.
std::string SavingText(uint64_t raw, uint64_t encoded);

}  // namespace thinwire

#endif  // THINWIRE_CLI_PROGRESS_H_
