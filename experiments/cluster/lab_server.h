// LabServer is a server in virtual time: the shards of a real server, with the checks and the
// outboxes of server/edge, without threads and without gRPC.
//
//   frame -> EventsOf -> tasks, one at a time -> Shard::Apply -> StreamOutbox -> frame
//
// Decoding a push and encoding parameters take the time of CodecCosts. Verdicts leave at once. The
// parameters of an answer are chosen when its message is written. A stream to a worker writes the
// next message while less than 1 MiB of the earlier ones has not arrived, so an answer has the
// newest parameters even if the link is slow.
//
// Joining and leaving take no bytes. The shards have the initial parameters from the beginning. Not
// thread-safe.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_LAB_SERVER_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_LAB_SERVER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "common/memory/byte_chain.h"
#include "common/partition.h"
#include "common/spec/job_spec.h"
#include "common/time/virtual_time.h"
#include "experiments/cluster/codec_costs.h"
#include "experiments/cluster/learning_task.h"
#include "experiments/cluster/shard_turns.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/optimizer/group_updates.h"
#include "server/core/shard.h"
#include "server/core/shard_snapshot.h"
#include "server/edge/lead/round_sum.h"
#include "server/edge/stream/published_slots.h"
#include "server/edge/stream/stream_outbox.h"

namespace thinwire::lab {

// The generation, the epoch and the incarnations of a run, in which no process is ever restarted.
inline constexpr Generation kLabGeneration{1};
inline constexpr Epoch kLabEpoch{1};
inline constexpr Incarnation kLabIncarnation{1};

class LabServer {
 public:
  // The objects that all servers share. They must outlive the servers.
  struct Shared {
    const JobSpec& job;
    const Partition& partition;
    const std::vector<GroupUpdate>& updates;  // by parameter group
    const CodecCosts& costs;
    uint64_t planned_examples = 0;
    std::optional<uint64_t> imposed_staleness;
    VirtualTime& queue;
    // Sends FRAME to a worker and calls DELIVERED when it has arrived.
    std::function<void(ServerId, WorkerId, ByteChain frame, std::function<void()> delivered)> send;
    // Called after every event of a shard.
    std::function<void(ShardId, const Event&, const Effects&)> applied;
    // Called when all shards of a server have the gradients of a round, in a job with clip_norm.
    std::function<void(ServerId, const FullRound&)> full;
    // Called with an error that ends the run.
    std::function<void(const absl::Status&)> failed;
  };

  // Makes the shards of server ID, whose parameters are INITIAL, one span per tensor. All workers
  // have joined. If SNAPSHOTS has elements, one per shard of the model, the shards continue from
  // them instead.
  LabServer(const Shared& shared, ServerId id, ConstTensors initial,
            std::span<const ShardSnapshot> snapshots = {});
  LabServer(const LabServer&) = delete;
  LabServer& operator=(const LabServer&) = delete;

  // A frame of a worker has arrived.
  void Receive(const ByteChain& bytes);
  // WORKER has left after its last step.
  void Leave(WorkerId worker);
  // The lead has passed a new rule on.
  void ChangeRule(const RuleEvent& event);
  // The norm of a round over all servers has arrived.
  void Clip(const ClipEvent& event);

  // REQUIRES: the shard is on this server.
  const Shard& shard(ShardId id) const { return *hosted_.at(id).shard; }
  Shard& shard(ShardId id) { return *hosted_.at(id).shard; }

 private:
  struct Hosted {
    std::unique_ptr<Shard> shard;
    std::shared_ptr<PublishedSlots> slots;
    std::unique_ptr<ShardTurns> turns;  // null without imposed staleness
    std::optional<Version> encoded;     // the newest version that EncodeCost has counted
  };
  // The server does its tasks one after another. A task begins after COST.
  struct Task {
    absl::Duration cost;
    std::function<void()> run;
  };
  struct Stream {
    StreamOutbox outbox;
    uint64_t undelivered_bytes = 0;
    bool touched = false;  // is in touched_
  };

  void Submit(ShardId shard, Event event);
  void SubmitToAll(const Event& event);
  void Work();
  void Apply(ShardId shard, const Event& event);
  void AnswerReads(ShardId shard, const std::vector<ReadAnswer>& reads);
  void AnswerInTurn(ShardId shard, const Event& event, const std::vector<ReadAnswer>& reads);
  // Returns the time of encoding the newest parameters of SHARD for a reader of FORM; 0 if an
  // earlier call has returned it.
  absl::Duration EncodeCost(ShardId shard, const ReadForm& form);
  Stream& Touch(WorkerId worker);
  void Write(WorkerId worker);

  const Shared shared_;
  const ServerId id_;
  absl::flat_hash_map<ShardId, Hosted> hosted_;
  std::optional<RoundSum> round_sum_;  // set if the server has a shard and the job has a clip_norm
  std::deque<Task> tasks_;
  bool busy_ = false;              // the cost of the first task passes
  std::vector<Stream> streams_;    // by worker number
  std::vector<WorkerId> touched_;  // streams with new entries
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_LAB_SERVER_H_
