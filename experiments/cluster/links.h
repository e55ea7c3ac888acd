// The links of an experiment's machines (sim/link_model.h).
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_LINKS_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_LINKS_H_

#include "absl/time/time.h"
#include "proto/experiment.pb.h"
#include "sim/link_model.h"

namespace thinwire::lab {

using sim::LinkModel;
using sim::LinkSpec;

// Returns the link that LINK of an experiment file describes.
inline LinkSpec LinkOf(const Link& link) {
  return {.bits_per_second = link.megabits_per_second() * 1e6,
          .latency = absl::Milliseconds(link.latency_ms())};
}

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_LINKS_H_
