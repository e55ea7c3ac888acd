// The efficiency table compares the exchange of gTop-k (Shi et al. 2019, arXiv 1901.04359) with
// thinwire's, for the networks and the cost model of the paper. An efficiency is the time that a
// worker computes, divided by the time of a step.
//
//   method             source                  step time
//   dense, Top-k,      formulas                compute + select + formula of the paper (exchange_times.h)
//   gTop-k             published seconds       the measured times of gTop-k at 32 workers
//                      published throughput    compute / published efficiency, at 32 workers
//   thinwire fp8,      virtual time            simulated without overlap (server_step.h)
//   thinwire onebit,   ... + overlap           simulated with overlap
//   thinwire top-k,    ... + slow selection    top-k and gTop-k only: the selection takes the published
//   thinwire gTop-k                            time instead of encode_ns_per_value
//
// The paper's two sets of figures do not agree, and neither agrees with its formulas: the measured
// communication of gTop-k at 32 workers takes 5 to 70 times as long as the formula says. All rows
// except those of the published throughput start from the measured compute and selection times. All
// rows except the published ones use links of the same alpha and beta, so they can be compared with
// each other.
//
// thinwire's rows have a server beside each worker. Payload bytes are measured (payload_bytes.h). The
// paper selects on the processor that computes, so its slow selection is to be compared without
// overlap.
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
  double efficiency = 0;  // 0 to 1
  double step_seconds = 0;
};

// Returns the rows of TABLE, network by network. Takes a few seconds for large networks. Errors:
// InvalidArgument "efficiency.FIELD: ..." for a value that makes no sense.
absl::StatusOr<std::vector<EfficiencyRow>> EfficiencyRows(const EfficiencyTable& table);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_EFFICIENCY_EFFICIENCY_TABLE_H_
