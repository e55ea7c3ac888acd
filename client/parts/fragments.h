// Fragments: the part of a client that exchanges the fragments of a model one after the other within
// a step (common/model/fragments.h, docs/streaming.md). It replaces Ready and WaitAll:
//
//   client->BeginStep(step, examples);
//   for each fragment:   client->fragments().Ready(f, tensors);  ...  client->fragments().Wait(f)
//   client->EndStep();
#ifndef THINWIRE_CLIENT_PARTS_FRAGMENTS_H_
#define THINWIRE_CLIENT_PARTS_FRAGMENTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "client/parts/core_thread.h"
#include "common/base/ids.h"
#include "common/model/fragments.h"

namespace thinwire::client {

class Fragments {
 public:
  explicit Fragments(CoreThread& thread)
      : thread_(thread), shards_(DealFragments(thread.partition, thread.options.fragments)) {}

  // Returns the shards of each fragment (options.fragments).
  const std::vector<std::vector<ShardId>>& shards() const { return shards_; }
  // Passes the values of TENSORS, one span per tensor in the host's memory, for the shards of
  // FRAGMENT to the client. A step passes all fragments, in ascending order, or calls Client::Ready
  // for all tensors. The values of the fragment must not change until EndStep returns.
  void Ready(uint32_t fragment, std::span<const std::span<float>> tensors);
  // Blocks until the next step's parameters of FRAGMENT, whose values were passed to Ready, are in
  // the replica. They stay unchanged until the next Ready of FRAGMENT. After Stop, the wait lasts as
  // long as EndStep. Errors: those of Client::WaitTensor.
  absl::Status Wait(uint32_t fragment);

 private:
  CoreThread& thread_;
  const std::vector<std::vector<ShardId>> shards_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PARTS_FRAGMENTS_H_
