// The efficiency table compares the exchange of gTop-k (Shi et al. 2019, arXiv 1901.04359) with
// thinwire's, for the networks and the cost model of the paper.
#ifndef THINWIRE_EXPERIMENTS_EFFICIENCY_EFFICIENCY_TABLE_H_
#define THINWIRE_EXPERIMENTS_EFFICIENCY_EFFICIENCY_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire::lab {

struct EfficiencyRow {
  std::string network;
  uint32_t workers = 0;
  std::string method;
  std::string source;
  double efficiency = 0;  // compute time / step time, 0 to 1
  double step_seconds = 0;
};

// Returns the rows of TABLE, network by network. Errors: InvalidArgument "efficiency.FIELD: ..." for a
// value that makes no sense.
absl::StatusOr<std::vector<EfficiencyRow>> EfficiencyRows(const EfficiencyTable& table);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_EFFICIENCY_EFFICIENCY_TABLE_H_
