// Exploration visits every state that a small cluster can reach (cluster_transitions.h), with every
// order of deliveries and every placement of a bounded number of faults. Besides the checks of each
// transition, it checks that
//
//   - from every state, the cluster can finish without another fault and without a new process
//   - processes that stop leave both shards at the same step, with no gradient that waits for its
//     update, if no process crashes and no lease runs out
//
// A violation is reported with the actions that lead to it. Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_EXPLORATION_H_
#define THINWIRE_SERVER_CORE_TESTING_EXPLORATION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/core/testing/cluster_transitions.h"
#include "server/core/testing/shard_states.h"

namespace thinwire {

class Exploration {
 public:
  explicit Exploration(const ExplorationOptions& options)
      : stops_(options.faults.stops > 0), transitions_(options) {}

  // Visits all states. Returns the first violation, or an empty string.
  std::string Run();

  size_t state_count() const { return states_.size(); }
  size_t edge_count() const { return edge_count_; }
  // Returns the number of states in which the cluster has finished.
  size_t final_count() const { return final_count_; }
  const ShardStates& shard_states() const { return transitions_.shard_states(); }

 private:
  using Cluster = ClusterTransitions::Cluster;
  using Action = ClusterTransitions::Action;

  struct ClusterHash {
    size_t operator()(const Cluster& cluster) const;
  };

  uint32_t Visit(const Cluster& cluster, uint32_t from, const Action& action);
  std::string DescribePath(uint32_t state) const;
  // Returns a state from which the cluster cannot finish, or states_.size() if there is none.
  uint32_t FindStuck() const;

  const bool stops_;  // processes may stop
  ClusterTransitions transitions_;
  std::vector<Cluster> states_;
  std::vector<std::pair<uint32_t, Action>> reached_by_;  // for each state: a way to reach it
  std::unordered_map<Cluster, uint32_t, ClusterHash> numbers_;
  std::vector<std::pair<uint32_t, uint32_t>> progress_;  // (to, from) of actions without fault
  size_t edge_count_ = 0;
  size_t final_count_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_EXPLORATION_H_
