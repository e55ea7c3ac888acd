// FakeServer: a minimal server for the client's tests. It accepts every push at once, subtracts its
// values from the parameters (w -= g), and answers every read at once. A test can set the verdicts.
// If the last push of a shard arrives again, the server answers it with the stored verdict.
#ifndef THINWIRE_CLIENT_TESTING_FAKE_SERVER_H_
#define THINWIRE_CLIENT_TESTING_FAKE_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/transport/in_process_transport.h"
#include "common/ids.h"
#include "common/partition.h"
#include "proto/frame.h"

namespace thinwire {

// Thread-safe.
class FakeServer final : public InProcessServer {
 public:
  // Returns the verdict of a push that arrives for the first time. The server uses only the
  // verdict's `kind` and `frontier`.
  using Judge = std::function<VerdictEntry(const PushEntry&)>;

  FakeServer(const Partition& partition, ServerId server);

  void set_judge(Judge judge);
  // A function that changes a ParametersEntry before the server sends it.
  using Answer = std::function<void(ParametersEntry&)>;
  void set_answer(Answer answer);
  // Until ReleaseReads is called, answers reads of SHARDS only with a notice that the reads wait
  // for WORKER.
  void HoldReads(std::vector<ShardId> shards, WorkerId worker);
  void ReleaseReads();
  // From now on, replies to heartbeats list WORKERS as live beside the calling worker.
  void set_others(std::vector<WorkerId> workers);
  // Simulates a restart of the server's process. EPOCH identifies the new process. Refuses frames
  // of workers that joined the previous process.
  void Restart(Epoch epoch);
  // From now on, every reply to a heartbeat says that another process uses the worker's number.
  void Fence();
  void set_lease_seconds(double lease_seconds);
  // Sets the initial values of SHARD, so that no worker needs to upload them.
  void Seed(ShardId shard, std::vector<float> values);

  std::vector<float> masters(ShardId shard) const;
  // Returns the pushes in order of arrival, without repeated ones.
  std::vector<PushEntry> pushes() const;
  int seed_count() const;
  int leave_count() const;
  int heartbeat_count() const;
  // Returns the number of open streams.
  int stream_count() const;
  // Returns the number of ParametersEntry messages that the server has sent.
  int answer_count() const;

  void Opened(uint64_t stream, Peer peer) override;
  void Frame(uint64_t stream, const ByteChain& frame) override;
  void Closed(uint64_t stream) override;
  absl::StatusOr<JoinReply> Join(const JoinRequest& request) override;
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) override;
  absl::StatusOr<LeaveReply> Leave(const LeaveRequest& request) override;
  absl::StatusOr<std::vector<MastersChunk>> Masters() override;

 private:
  struct Shard {
    std::vector<float> masters;
    bool seeded = false;
    std::optional<ReadEntry> unanswered;  // a read that waits for the first values
    Version version;
    std::optional<VerdictEntry> last;
  };

  ServerFrame NewFrame() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(const SeedEntry& seed, ServerFrame& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(const PushEntry& push, ServerFrame& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(const ReadEntry& read, ServerFrame& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Partition& partition_;
  const ServerId server_;

  mutable absl::Mutex mu_;
  std::map<ShardId, Shard> shards_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Peer> streams_ ABSL_GUARDED_BY(mu_);
  Judge judge_ ABSL_GUARDED_BY(mu_);
  Answer answer_ ABSL_GUARDED_BY(mu_);
  std::vector<ShardId> held_shards_ ABSL_GUARDED_BY(mu_);
  WorkerId held_by_ ABSL_GUARDED_BY(mu_);
  std::vector<ReadEntry> held_reads_ ABSL_GUARDED_BY(mu_);
  Epoch epoch_ ABSL_GUARDED_BY(mu_) = Epoch{1};
  bool fenced_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<WorkerId> others_ ABSL_GUARDED_BY(mu_);
  double lease_seconds_ ABSL_GUARDED_BY(mu_) = 10;
  std::vector<PushEntry> pushes_ ABSL_GUARDED_BY(mu_);
  int seed_count_ ABSL_GUARDED_BY(mu_) = 0;
  int leave_count_ ABSL_GUARDED_BY(mu_) = 0;
  int heartbeat_count_ ABSL_GUARDED_BY(mu_) = 0;
  int answer_count_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_TESTING_FAKE_SERVER_H_
