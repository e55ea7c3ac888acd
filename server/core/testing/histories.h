// Histories: random events for a shard, likely and unlikely ones, all drawn from one seed.
//
// Workers mostly do what a client does: join, read, push the step that is next. In between comes
// what networks, crashes and mistakes bring: an old event word for word, an older or unknown
// incarnation, another generation, a step too far or long done, a lease that runs out and a worker
// that comes back, a payload that is no number.
#ifndef THINWIRE_SERVER_CORE_TESTING_HISTORIES_H_
#define THINWIRE_SERVER_CORE_TESTING_HISTORIES_H_

#include <cstdint>
#include <random>
#include <vector>

#include "common/spec/rule.h"
#include "server/core/event.h"
#include "server/core/shard.h"

namespace thinwire {

// Numbers from a seed, the same on every machine.
class Dice {
 public:
  explicit Dice(uint64_t seed) : bits_(seed) {}

  // 0 to n - 1. REQUIRES: n > 0.
  uint64_t Below(uint64_t n) { return bits_() % n; }
  bool Percent(uint64_t percent) { return Below(100) < percent; }

 private:
  std::mt19937_64 bits_;
};

class History {
 public:
  History(const Rule& rule, uint64_t seed);

  // The next event. SHARD is the one that has seen all events so far: steps are drawn around where
  // it stands.
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
  Dice dice_;
  std::vector<Incarnation> newest_;  // by worker
  std::vector<bool> absent_;         // by worker: never came, or has left
  std::vector<Event> past_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_HISTORIES_H_
