// Progress: the one line that tells how a run is doing.
//
// In rounds (sync, backup) the workers are at one step. Their lines are up to 200 ms old and from
// different moments, so the newest one tells the step; where workers may be apart, it is a range.
//
//   step 412  epoch 1  loss 0.412  accuracy 0.874  2310 samples/s  pushed 81.2 MB (4.0x less than
//   fp32)  staleness 1.3
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
  explicit Progress(bool in_rounds) : in_rounds_(in_rounds) {}

  // The line of RECORD at NOW; the rate is that of the last few seconds. STALENESS is the mean so
  // far, if it is known.
  std::string Line(const RunRecord& record, std::optional<double> staleness, absl::Time now);

 private:
  double Rate(uint64_t examples, absl::Time now);

  const bool in_rounds_;
  std::deque<std::pair<absl::Time, uint64_t>> seen_;  // examples of all workers
};

// "81.2 MB"; a MB is 10^6 bytes.
std::string BytesText(uint64_t bytes);
// "4.0x less than fp32"; "" if nothing was sent, or no less.
std::string SavingText(uint64_t raw, uint64_t encoded);

}  // namespace thinwire

#endif  // THINWIRE_CLI_PROGRESS_H_
