#include "client/parts/fragments.h"

#include "client/core/client_core.h"
#include "proto/worker_event.pb.h"

namespace thinwire::client {

void Fragments::Ready(uint32_t fragment, std::span<const std::span<float>> tensors) {
  thread_.step_is_partial = true;
  // Wait may follow before the loop has encoded the fragment.
  for (const ShardId shard : shards_[fragment]) thread_.progress.OnShardExpected(shard);
  thread_.loop->Post(
      [this, fragment,
       tensors = std::vector<std::span<const float>>(tensors.begin(), tensors.end())] {
        thread_.core->ReadyFragment(fragment, tensors);
      });
}

absl::Status Fragments::Wait(uint32_t fragment) {
  return thread_.CountWait(WorkerCounters::kWaitParametersMicrosFieldNumber, [&] {
    // The answer may wait for pushes of workers that wait to know where this one stops.
    if (thread_.progress.WaitShardsOrStop(shards_[fragment])) {
      thread_.ReportStop(thread_.next + 1);
    }
    return thread_.progress.WaitShards(shards_[fragment]);
  });
}

}  // namespace thinwire::client
