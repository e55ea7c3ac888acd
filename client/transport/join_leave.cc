#include "client/transport/join_leave.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/join_tensors.h"

namespace thinwire::client {

bool IsRetryable(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kInternal:  // gRPC's code if a connection breaks within a message
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kOk:
      return true;
    default:
      return false;
  }
}

absl::Status WithServerName(const Transport& transport, ServerId server,
                            const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(transport.NameOf(server), ": ", status.message()));
}

JoinRequest MakeJoinRequest(const ClientOptions& options, const Partition& partition) {
  JoinRequest request;
  request.set_job(options.job);
  request.set_worker(options.worker.value);
  SetTensors(partition.whole().tensors(), request);
  request.set_member(options.member);
  request.mutable_owned_tensors()->Add(options.owned_tensors.begin(), options.owned_tensors.end());
  // Sends the shard size from the options, before rounding. The server rounds the shard size in the
  // same way as this client.
  request.set_shard_size(options.shard_size);
  request.set_servers(options.server_count);
  request.set_partition_hash(partition.whole().hash());
  request.set_planned_examples(options.planned_examples);
  if (options.config.has_value()) *request.mutable_config() = *options.config;
  request.set_data_hash(options.data_hash);
  request.set_model_file_hash(options.model_file_hash);
  return request;
}

void ToLocal(const Partition& partition, JoinReply& reply) {
  if (!partition.is_part()) return;
  auto& shards = *reply.mutable_shards();
  const auto others = std::remove_if(shards.begin(), shards.end(), [&partition](ShardState& state) {
    const std::optional<ShardId> local = partition.local(ShardId{state.shard()});
    if (local.has_value()) state.set_shard(local->value);
    return !local.has_value();
  });
  shards.erase(others, shards.end());
}

Step ReturningStep(std::span<const JoinReply> replies) {
  uint64_t step = 0;
  for (const JoinReply& reply : replies) {
    for (const ShardState& shard : reply.shards()) {
      step = std::max({step, shard.predecessor_next(), shard.frontier()});
    }
  }
  return Step{step};
}

Step StartingStep(std::span<const JoinReply> replies) {
  uint64_t next = 0;
  uint64_t frontier = 0;
  uint64_t dealt_until = 0;
  bool open_round = false;
  for (const JoinReply& reply : replies) {
    dealt_until = std::max(dealt_until, reply.dealt_until());
    for (const ShardState& shard : reply.shards()) {
      next = std::max({next, shard.predecessor_next(), shard.largest_next()});
      frontier = std::max(frontier, shard.frontier());
      open_round = open_round || (reply.by_round() && shard.open());
    }
  }
  // 0: the lead deals nothing.
  if (dealt_until > 0 && frontier == dealt_until) open_round = false;
  return Step{std::max(next, frontier + (open_round ? 1 : 0))};
}

}  // namespace thinwire::client
