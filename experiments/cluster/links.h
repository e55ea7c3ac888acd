// The links of an experiment's machines (sim/link_model.h).
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_LINKS_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_LINKS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

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

// Returns the sites of MACHINES. REQUIRES: CheckMachines accepts them.
inline sim::Sites SitesOf(const Machines& machines) {
  sim::Sites sites;
  const auto add = [&sites](uint32_t site, uint32_t count) {
    sites.of_machine.insert(sites.of_machine.end(), count, site);
  };
  std::map<std::string, uint32_t> numbers;
  for (const Site& site : machines.site()) {
    const auto number = static_cast<uint32_t>(numbers.size());
    numbers[site.name()] = number;
    add(number, site.workers());
  }
  for (const Site& site : machines.site()) add(numbers[site.name()], site.servers());
  sites.distance.assign(numbers.size(), std::vector<absl::Duration>(numbers.size()));
  for (const Distance& distance : machines.distance()) {
    const uint32_t a = numbers[distance.from()], b = numbers[distance.to()];
    sites.distance[a][b] = sites.distance[b][a] = absl::Milliseconds(distance.round_trip_ms() / 2);
  }
  return sites;
}

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_LINKS_H_
