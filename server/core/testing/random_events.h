// RandomEvents draws a random sequence of normal and faulty events for a shard from one seed.
//
// Most events are those of correct clients: workers join, read, and push their next step. Other
// events result from network faults, crashes and bugs: a repeated earlier event, an older or
// unknown incarnation, another generation, a step that is too far ahead or long finished, an
// expired lease, a returning worker, a payload that contains an infinity. If a full round waits for
// its sum event, this event is likely.
#ifndef THINWIRE_SERVER_CORE_TESTING_RANDOM_EVENTS_H_
#define THINWIRE_SERVER_CORE_TESTING_RANDOM_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "common/spec/rule.h"
#include "server/core/event.h"
#include "server/core/shard.h"

namespace thinwire {

// A random number generator. The same seed gives the same numbers on every machine.
class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : bits_(seed) {}

  // Returns a random number from 0 to n - 1. REQUIRES: n > 0.
  uint64_t Below(uint64_t n) { return bits_() % n; }
  bool Percent(uint64_t percent) { return Below(100) < percent; }

 private:
  std::mt19937_64 bits_;
};

class RandomEvents {
 public:
  // RULE_CHANGES: some events are new rules of any mode, for the same number of workers.
  RandomEvents(const Rule& rule, uint64_t seed, bool rule_changes = false);

  // Draws the next event. Steps are near the frontier of SHARD or near the sending worker's `next`.
  // REQUIRES: SHARD has applied all earlier events.
  Event Next(const Shard& shard);

 private:
  Event DrawEvent(const Shard& shard);
  Event DrawPush(const Shard& shard, WorkerId worker);
  Event DrawRead(const Shard& shard, WorkerId worker);
  Event DrawJoin(WorkerId worker);
  WorkerId DrawWorker();
  Incarnation DrawIncarnation(WorkerId worker);
  Generation DrawGeneration();
  ReadForm DrawForm(const Shard& shard);
  Step DrawStep(const Shard& shard, WorkerId worker);

  const Rule rule_;
  SeededRandom random_;
  const bool rule_changes_;
  std::vector<Incarnation> newest_;  // each worker's newest incarnation
  std::vector<bool> absent_;         // for each worker: whether it never joined or has left
  std::vector<Event> past_;
};

// Returns EVENT with payloads of VALUE_COUNT values in place of those of two values. A seed then
// has only values 100. A push has a random payload, which the old payload determines. Most of these
// payloads are sparse. If the second value of the old payload is infinite, one value of the new one
// is infinite. All other entries are positive whole numbers, so that no sum of entries is 0.
Event Widened(Event event, size_t value_count);

// Draws a rule of this number of workers and any mode.
Rule DrawMode(SeededRandom& random, uint32_t workers, bool sync_only);

// Draws a rule of up to four workers and any mode. SYNC_ONLY: of mode sync.
Rule DrawRule(SeededRandom& random, bool sync_only);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_RANDOM_EVENTS_H_
