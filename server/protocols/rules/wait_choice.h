// Chooses the number of backup workers or the slack from measured times of the workers' steps. Pure
// functions.
//
// Each candidate is judged by a replay: the workers take the measured times one after another, and
// begin their steps as the candidate allows. In mode backup, a late worker first ends its old step
// and then begins the open one, so the time of a step is longer than the order statistic of the
// workers' times.
//
//   backup   the largest expected progress per second:  progress(n) / mean time of a step
//   slack    the smallest slack with which the workers wait little longer than with kLargestSlack
//
// n is the mean number of examples of a step. It contains the examples of late pushes, because
// their values arrive in later pushes. With the noise scale B of the gradients, progress(n) is 1 /
// (1 + B / n), the part of the progress of the true gradient (McCandlish et al. 2018, arXiv
// 1812.06162). While B is not known, it is n. The staleness of late values does not count.
#ifndef THINWIRE_SERVER_PROTOCOLS_RULES_WAIT_CHOICE_H_
#define THINWIRE_SERVER_PROTOCOLS_RULES_WAIT_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "server/shards/step_times.h"

namespace thinwire {

// The smallest number of backup workers with at least this part of the largest progress per second
// is chosen. A smaller number than that stays while it has at least the part kGoodEnough.
inline constexpr double kNearlyBest = 0.98;
inline constexpr double kGoodEnough = 0.95;
// A slack is large enough if the workers wait for at most this part of their time more than with
// kLargestSlack.
inline constexpr double kMostExtraWaiting = 0.05;
inline constexpr uint64_t kLargestSlack = 16;

// In all functions, TIMES has the times of each worker. REQUIRES: no worker has an empty list.

// The means over the steps in mode backup.
struct MeanStep {
  double seconds = 0;
  double pushes = 0;  // accepted and late
};

// Returns the means with BACKUP backup workers. REQUIRES: BACKUP < TIMES.size().
MeanStep BackupStep(const StepSeconds& times, uint32_t backup);
// Returns the part of the workers' time, 0 to 1, in which they wait in mode ssp.
double WaitingPart(const StepSeconds& times, uint64_t slack);

struct WaitChoice {
  uint64_t value = 0;  // the number of backup workers, or the slack
  std::string reason;  // the expected figures
};

// Return the choice, or nullopt if CURRENT stays. At most half of the workers become backup
// workers. REQUIRES: CURRENT < TIMES.size() backup workers; EXAMPLES per push are above 0.
std::optional<WaitChoice> ChooseBackup(const StepSeconds& times, double examples,
                                       std::optional<double> noise_scale, uint32_t current);
std::optional<WaitChoice> ChooseSlack(const StepSeconds& times, uint64_t current);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_RULES_WAIT_CHOICE_H_
