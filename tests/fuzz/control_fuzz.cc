// A libFuzzer target for the control messages that a server examines before it trusts them: a Join
// (memory limit, partition of the model, comparison of jobs) and a Deal.
//
//   input = kind | bytes      kind % 2 = 0: a JoinRequest; 1: a Deal
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "common/model/partition.h"
#include "config/job_difference.h"
#include "proto/control.pb.h"
#include "proto/deal_check.h"
#include "proto/parsed_bytes.h"

namespace thinwire {
namespace {

constexpr uint32_t kWorkers = 4;

void TryJoin(const uint8_t* bytes, int size) {
  google::protobuf::io::ArrayInputStream stream(bytes, size);
  const bool bounded = CheckParsedBytes(stream, *JoinRequest::descriptor()).ok();
  JoinRequest join;
  if (!bounded || !join.ParseFromArray(bytes, size)) return;
  if (join.SpaceUsedLong() > kMostParsedBytes) std::abort();
  std::vector<TensorShape> tensors;
  for (const Tensor& tensor : join.tensors()) {
    tensors.push_back({tensor.name(), {tensor.shape().begin(), tensor.shape().end()}});
  }
  const auto partition = Partition::Make(std::move(tensors), join.shard_size(), join.servers());
  if (partition.ok()) {
    uint64_t count = 0;
    for (uint32_t s = 0; s < partition->shard_count(); ++s) {
      count += partition->value_count(ShardId{s});
    }
    if (count != partition->value_count()) std::abort();
  }
  if (JobDifference(join.config(), join.config(), Compared::kTask).has_value()) std::abort();
}

void TryDeal(const uint8_t* bytes, int size) {
  Deal deal;
  if (!deal.ParseFromArray(bytes, size)) return;
  if (!CheckDeal(deal, kWorkers, /*first_step=*/3).ok()) return;
  if (deal.step() < 3 || deal.members().empty() || deal.members_size() > int{kWorkers}) {
    std::abort();
  }
}

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  if (size == 0) return 0;
  const int length = static_cast<int>(size) - 1;
  if (input[0] % 2 == 0) {
    thinwire::TryJoin(input + 1, length);
  } else {
    thinwire::TryDeal(input + 1, length);
  }
  return 0;
}
