// RandomServer makes checkpoints for tests: the states of a few small shards of random settings
// after random events, with the fields of a server.
#ifndef THINWIRE_SERVER_DURABLE_TESTING_RANDOM_SERVER_H_
#define THINWIRE_SERVER_DURABLE_TESTING_RANDOM_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <vector>

#include "server/core/shard.h"
#include "server/core/testing/random_events.h"
#include "server/core/testing/random_shard.h"
#include "server/durable/checkpoint_format.h"

namespace thinwire {

// Compare and print checkpoints with all their arrays.
bool operator==(const Checkpoint& a, const Checkpoint& b);
std::ostream& operator<<(std::ostream& out, const Checkpoint& checkpoint);

class RandomServer {
 public:
  RandomServer(uint64_t seed, size_t shard_count);

  // Applies random events to every shard until each can be saved, at least EVENT_COUNT per shard,
  // and returns their states.
  Checkpoint Next(int event_count);

  const RandomShard& setting(size_t shard) const { return parts_[shard].setting; }

 private:
  struct Part {
    RandomShard setting;
    std::unique_ptr<Shard> shard;
    RandomEvents events;
    LogSequence applied = 0;
  };

  std::vector<Part> parts_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_TESTING_RANDOM_SERVER_H_
