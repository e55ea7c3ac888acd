#include "cli/server_totals.h"

namespace thinwire {

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
    totals.accepted_pushes += reply.accepted_pushes();
    totals.late_pushes += reply.late_pushes();
    totals.repeated_pushes += reply.repeated_pushes();
    totals.refused_pushes += reply.refused_pushes();
    totals.fenced_pushes += reply.fenced_pushes();
    totals.stale_pushes += reply.stale_pushes();
    totals.early_pushes += reply.early_pushes();
    totals.lease_expirations += reply.lease_expirations();
    totals.split_steps += reply.split_steps();
    for (const auto& [value, pushes] : reply.staleness()) totals.staleness[value] += pushes;
  }
  return totals;
}

}  // namespace thinwire
