// ServerTotals sums what the servers of a run counted.
#ifndef THINWIRE_CLI_SERVER_TOTALS_H_
#define THINWIRE_CLI_SERVER_TOTALS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "proto/control.pb.h"

namespace thinwire {

struct ServerTotals {
  // The sums of the counters of StatusReply, such as accepted_pushes. Its other fields are unset.
  StatusReply counters;
  // The number of accepted pushes per staleness.
  std::map<uint64_t, uint64_t> staleness;

  // Calls `visit` with the name and the sum of each counter, in the order of control.proto.
  void ForEachCounter(
      const std::function<void(const std::string& name, uint64_t value)>& visit) const;
  // The mean over the accepted pushes; 0 if there are none.
  double mean_staleness() const;
  // The largest staleness of an accepted push; 0 if there are none.
  uint64_t max_staleness() const;
};

ServerTotals TotalsOf(std::span<const StatusReply> replies);

}  // namespace thinwire

#endif  // THINWIRE_CLI_SERVER_TOTALS_H_
