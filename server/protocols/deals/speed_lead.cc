#include "server/protocols/deals/speed_lead.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

namespace thinwire {
namespace {

// A smaller part of the right number of local steps is not worth a deal.
constexpr double kGoodEnough = 0.1;

}  // namespace

bool SpeedLead::Update(const StepTimes& times, const std::vector<WorkerId>& live, Step frontier) {
  next_ = frontier.value;
  if (live.empty()) return false;
  std::map<WorkerId, double> seconds;
  for (const WorkerId worker : live) {
    const auto per_example = times.SecondsPerExample(worker, kLeastTimes, 2 * kLeastTimes);
    if (!per_example.has_value()) return false;
    seconds[worker] = *per_example;
  }
  const double fastest =
      std::ranges::min_element(seconds, {}, [](const auto& entry) { return entry.second; })->second;
  bool changes = false;
  std::map<WorkerId, uint32_t> batches;
  for (const auto& [worker, time] : seconds) {
    const double right = task_.local.count * fastest / time;
    const auto count = static_cast<uint32_t>(std::max(1.0, std::round(right)));
    const uint32_t last = dealer_.BatchesOf(worker);
    const uint32_t now = last == 0 ? task_.local.count : last / task_.accumulate;
    changes = changes || (count != now && std::abs(right - now) > kGoodEnough * right);
    batches[worker] = count * task_.accumulate;
  }
  if (!changes) return false;
  dealer_.Share(task_.local.count * task_.accumulate, std::move(batches));
  next_ = dealer_.StepAhead().value;
  return true;
}

}  // namespace thinwire
