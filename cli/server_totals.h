// ServerTotals: what the servers counted, over all of them.
#ifndef THINWIRE_CLI_SERVER_TOTALS_H_
#define THINWIRE_CLI_SERVER_TOTALS_H_

#include <cstdint>
#include <map>
#include <span>

#include "proto/control.pb.h"

namespace thinwire {

// Pushes are counted per shard.
struct ServerTotals {
  uint64_t accepted_pushes = 0;
  uint64_t late_pushes = 0;
  uint64_t repeated_pushes = 0;
  uint64_t refused_pushes = 0;
  uint64_t fenced_pushes = 0;
  uint64_t stale_pushes = 0;
  uint64_t early_pushes = 0;
  uint64_t lease_expirations = 0;
  uint64_t split_steps = 0;
  std::map<uint64_t, uint64_t> staleness;  // staleness -> accepted pushes

  // Over the accepted pushes; 0 without any.
  double mean_staleness() const;
  uint64_t max_staleness() const;
};

ServerTotals TotalsOf(std::span<const StatusReply> replies);

}  // namespace thinwire

#endif  // THINWIRE_CLI_SERVER_TOTALS_H_
