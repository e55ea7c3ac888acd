#include "client/join_request.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace thinwire::client {
namespace {

TEST(JoinRequestTest, AServerComputesTheSamePartitionOfIt) {
  const ClientOptions options = {
      .job = "train", .worker = WorkerId{3}, .server_count = 2, .planned_examples = 77};
  const std::vector<TensorShape> tensors = {{"w", {784, 100}}, {"b", {100}}, {"s", {}}};
  const Partition partition = *Partition::Make(tensors, options.shard_size, options.server_count);
  const JoinRequest request = MakeJoinRequest(options, partition);
  EXPECT_EQ(request.job(), "train");
  EXPECT_EQ(request.worker(), 3u);
  EXPECT_EQ(request.planned_examples(), 77u);
  std::vector<TensorShape> told;
  for (const Tensor& tensor : request.tensors()) {
    told.push_back({tensor.name(), {tensor.shape().begin(), tensor.shape().end()}});
  }
  EXPECT_EQ(told, tensors);
  const Partition again =
      *Partition::Make(std::move(told), request.shard_size(), request.servers());
  EXPECT_EQ(again.hash(), request.partition_hash());
}

}  // namespace
}  // namespace thinwire::client
