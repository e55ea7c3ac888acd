// Progress makes the line that shows the progress of a training run:
//
//   step 412  epoch 1  loss 0.412  accuracy 0.8740  2310 examples/s
//       pushed 81.2 MB (4.0x smaller than fp32)  staleness 1.3
//
// (wrapped here).
//
// In the sync and backup modes all workers are at the same step. Their reports are up to 200 ms old
// and were written at different times, so the line has the largest reported step. In the other
// modes it has the range of the workers' steps.
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
  // `by_round`: the mode is sync or backup.
  explicit Progress(bool by_round) : by_round_(by_round) {}

  // Returns the line at time `now`. `staleness` is the mean up to now, if it is known. The rate is
  // that of the last ten seconds.
  std::string Line(const RunRecord& record, std::optional<double> staleness, absl::Time now);

 private:
  double Rate(uint64_t examples, absl::Time now);

  const bool by_round_;
  std::deque<std::pair<absl::Time, uint64_t>> examples_;  // all workers' examples by time
};

// Returns, for example, "81.2 MB". A MB is 10^6 bytes.
std::string BytesText(uint64_t bytes);
// Returns, for example, "4.0x smaller than fp32", or "" if `encoded` is 0 or not smaller.
std::string SavingText(uint64_t raw, uint64_t encoded);

}  // namespace thinwire

#endif  // THINWIRE_CLI_PROGRESS_H_
