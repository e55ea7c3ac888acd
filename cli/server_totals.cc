#include "cli/server_totals.h"

#include "proto/counters.h"

namespace thinwire {

void ServerTotals::ForEachCounter(
    const std::function<void(const std::string& name, uint64_t value)>& visit) const {
  thinwire::ForEachCounter(counters, [&](const std::string& name, uint64_t value) {
    // These two uint64 fields of StatusReply identify a server's state; they count nothing.
    if (name != "generation" && name != "epoch") visit(name, value);
  });
}

double ServerTotals::mean_staleness() const {
  double sum = 0;
  double count = 0;
  for (const auto& [value, pushes] : staleness) {
    sum += static_cast<double>(value) * static_cast<double>(pushes);
    count += static_cast<double>(pushes);
  }
  return count == 0 ? 0 : sum / count;
}

uint64_t ServerTotals::max_staleness() const {
  return staleness.empty() ? 0 : staleness.rbegin()->first;
}

ServerTotals TotalsOf(std::span<const StatusReply> replies) {
  ServerTotals totals;
  for (const StatusReply& reply : replies) {
    AddCounters(reply, totals.counters);
    for (const auto& [value, pushes] : reply.staleness()) totals.staleness[value] += pushes;
  }
  totals.counters.clear_generation();
  totals.counters.clear_epoch();
  return totals;
}

}  // namespace thinwire
