// Waits: what the servers last said about the reads that they cannot answer yet, for a person.
//
//   step 41: waits for worker 3 (shards 0-7)
//   step 0: waits for workers, 1 of 2 are there (shards 0-3)
//   step 0: waits for first values (shard 2)
#ifndef THINWIRE_CLIENT_WAITS_H_
#define THINWIRE_CLIENT_WAITS_H_

#include <map>
#include <string>

#include "common/ids.h"
#include "proto/frame.h"

namespace thinwire::client {

// Not thread-safe.
class Waits {
 public:
  void Add(const WaitingEntry& entry) { waits_[entry.shard] = entry; }
  // The shard's read was answered. True if anything was said of it.
  bool Clear(ShardId shard) { return waits_.erase(shard) > 0; }

  // Empty if nothing waits; shards that wait for the same are named together.
  std::string Text() const;

 private:
  std::map<ShardId, WaitingEntry> waits_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_WAITS_H_
