// FakeServer: a server for the client's tests, simple enough to be right at a glance. Every push is
// accepted at once and taken from the masters (w -= g), every read is answered at once; a test may
// judge in its place. The last push of a shard that comes again gets its stored verdict.
#ifndef THINWIRE_CLIENT_FAKE_SERVER_H_
#define THINWIRE_CLIENT_FAKE_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/in_process_transport.h"
#include "common/ids.h"
#include "common/partition.h"
#include "proto/frame.h"

namespace thinwire {

// Thread-safe.
class FakeServer final : public InProcessServer {
 public:
  // What becomes of a push that is new: kind and frontier are what matters.
  using Judge = std::function<VerdictEntry(const PushEntry&)>;

  FakeServer(const Partition& partition, ServerId server);

  void set_judge(Judge judge);
  // What becomes of an answer before it is sent.
  using Answer = std::function<void(ParametersEntry&)>;
  void set_answer(Answer answer);
  // Reads of these shards get a notice that WORKER is waited for, until they are let go.
  void HoldReads(std::vector<ShardId> shards, WorkerId worker);
  void ReleaseReads();
  // From now on of another epoch, in which it takes no frame of the old one.
  void Restart(Epoch epoch);
  void Fence();
  void set_lease_seconds(double lease_seconds);
  // Gives a shard its first values before any worker does.
  void Seed(ShardId shard, std::vector<float> values);

  std::vector<float> masters(ShardId shard) const;
  // The pushes that were judged, each once, in their order.
  std::vector<PushEntry> pushes() const;
  int seed_count() const;
  int leave_count() const;
  // Parameters entries that were sent.
  int answer_count() const;

  void Opened(uint64_t stream, Peer peer) override;
  void Frame(uint64_t stream, const ByteChain& frame) override;
  void Closed(uint64_t stream) override;
  absl::StatusOr<JoinReply> Join(const JoinRequest& request) override;
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) override;
  absl::StatusOr<LeaveReply> Leave(const LeaveRequest& request) override;

 private:
  struct Shard {
    std::vector<float> masters;
    bool seeded = false;
    Version version;
    std::optional<VerdictEntry> last;
  };

  ServerFrame NewFrame() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(const SeedEntry& seed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
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
  double lease_seconds_ ABSL_GUARDED_BY(mu_) = 10;
  std::vector<PushEntry> pushes_ ABSL_GUARDED_BY(mu_);
  int seed_count_ ABSL_GUARDED_BY(mu_) = 0;
  int leave_count_ ABSL_GUARDED_BY(mu_) = 0;
  int answer_count_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_FAKE_SERVER_H_
