// ShardStates holds every state that an exploration has reached at one shard. It computes a
// transition by replaying the state's events on a new Shard, and then checks it:
//
//   - the effects and the new state are those of the Oracle
//   - a push gets exactly one verdict, and no gradient is accepted twice
//   - masters and pending gradients together are the accepted gradients
//   - the frontier never falls, and answers keep the staleness bound
//
// Two sequences of events with the same state in the Oracle's view lead to the same ShardStates
// state. Each transition is computed once. Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_SHARD_STATES_H_
#define THINWIRE_SERVER_CORE_TESTING_SHARD_STATES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/spec/rule.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/optimizer/schedule.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"
#include "server/core/testing/oracle.h"

namespace thinwire {

// A small form of Event. Each gradient that a worker process computes is one bit, and a push has
// the bits of all gradients that it contains.
struct ExploredEvent {
  enum class Kind : uint8_t { kJoin, kRead, kPush, kExpire, kReturn, kOpen, kLeave, kRule, kSum };

  Kind kind = Kind::kOpen;
  uint8_t worker = 0;
  uint8_t incarnation = 0;
  uint8_t step = 0;
  uint8_t late_examples = 0;
  uint32_t gradients = 0;

  // NEXT_RULE: the rule of kRule, which begins at `step`.
  Event ToEvent(const Rule& next_rule = Rule()) const;
  // Returns a number below 2^43 that no other event has. REQUIRES: worker < 4, incarnation < 16,
  // step < 16, late_examples < 16 and gradients < 2^24.
  uint64_t Pack() const;
  std::string ToString() const;
};

class ShardStates {
 public:
  struct Transition {
    uint32_t to = 0;
    Effects effects;
  };

  // State 0 is a shard that has first values and no workers.
  // NEXT_RULE: the rule of the events kRule. SUMS: full rounds wait for the events kSum.
  explicit ShardStates(const Rule& rule, const Rule& next_rule = Rule(), bool sums = false);

  // Returns the transition of state FROM by EVENT.
  const Transition& Apply(uint32_t from, const ExploredEvent& event);

  // Return of STATE: the accepted gradients, those of them that wait for their update, the
  // frontier, the frontier after the event kSum of a full round, and whether the shard is open.
  uint32_t accepted(uint32_t state) const { return states_[state].accepted; }
  uint32_t pending(uint32_t state) const;
  Step frontier(uint32_t state) const { return states_[state].oracle.frontier(); }
  Step next_frontier(uint32_t state) const { return states_[state].oracle.NextFrontier(); }
  bool open(uint32_t state) const { return states_[state].oracle.open(); }

  size_t state_count() const { return states_.size(); }
  size_t transition_count() const { return transitions_.size(); }
  // Returns the checks that failed, one line each.
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct State {
    Oracle oracle;
    std::vector<ExploredEvent> events;
    uint32_t accepted = 0;
  };

  Transition Compute(uint32_t from, const ExploredEvent& event);
  void Check(const State& before, const ExploredEvent& event, const Effects& effects,
             const Shard& shard, const State& after);
  void CheckAnswers(const Effects& effects, const Shard& shard, const State& after);
  void Require(bool holds, const char* claim, const State& after);
  std::string KeyOf(const State& state) const;

  const ShardOptions options_;
  const Rule next_rule_;
  const Schedule schedule_ = ConstantRate();
  std::deque<State> states_;
  std::map<std::string, uint32_t> by_key_;
  std::unordered_map<uint64_t, std::unique_ptr<Transition>> transitions_;
  std::vector<std::string> violations_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_SHARD_STATES_H_
