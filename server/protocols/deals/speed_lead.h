// SpeedLead is the lead's part in `auto_local_steps`. It lets the Dealer announce a number of local
// steps for each worker, so that all workers take about the same time for a step.
//
//   times of the first shard -> SpeedLead::Update -> Dealer::Share -> next deal
//
// The fastest worker takes the local steps of the job file, H. A worker whose examples take t
// seconds each, where those of the fastest one take t_min, takes H t_min / t of them, rounded, and
// at least one. These are the dynamic local updates of Liu et al. 2024 (arXiv 2401.09135, section
// 5), who round down. A time is the median of a worker's last steps. It contains the time in which
// the push is sent.
//
// The numbers change when that of a worker is wrong by more than a tenth, and only when the steps
// of the last deal have been measured. Not thread-safe.
#ifndef THINWIRE_SERVER_PROTOCOLS_DEALS_SPEED_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_DEALS_SPEED_LEAD_H_

#include <cstddef>
#include <vector>

#include "common/base/ids.h"
#include "common/spec/task_spec.h"
#include "server/protocols/state/dealer.h"
#include "server/shards/step_times.h"

namespace thinwire {

class SpeedLead {
 public:
  // The number of steps of each worker that a choice requires.
  static constexpr size_t kLeastTimes = 4;

  // DEALER must outlive this object. REQUIRES: TASK is valid and has local steps.
  SpeedLead(const TaskSpec& task, Dealer& dealer) : task_(task), dealer_(dealer) {}

  // Returns whether the numbers must be chosen again when a shard's frontier is at FRONTIER.
  bool Due(Step frontier) const { return frontier.value >= next_ + kLeastTimes; }
  // Chooses the numbers from the times of the workers in LIVE, ascending, and returns whether they
  // change. While a worker has fewer than kLeastTimes times, nothing changes.
  bool Update(const StepTimes& times, const std::vector<WorkerId>& live, Step frontier);

 private:
  const TaskSpec task_;
  Dealer& dealer_;
  uint64_t next_ = 0;  // a step with the newest numbers, or one of the last choice
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_DEALS_SPEED_LEAD_H_
