// FakeServer: a minimal server for the client's tests. It accepts every push at once, subtracts its
// values from the parameters (w -= g), and answers every read at once. A test can set the verdicts.
// If a push arrives again, the server answers it with the stored verdict. A test
// can restart the server with or without its state, or with the state of an earlier step.
#ifndef THINWIRE_CLIENT_TESTING_FAKE_SERVER_H_
#define THINWIRE_CLIENT_TESTING_FAKE_SERVER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/testing/in_process_transport.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "proto/control.pb.h"
#include "proto/frame.h"
#include "proto/precision.pb.h"

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
  // Simulates a restart of the server's process, with a new epoch. Streams of the previous process
  // stay open until a worker sends a frame with the previous epoch. KEEP_STATE: the new process has
  // the shards, verdicts and run of the previous one; otherwise, it has no run and refuses all
  // Joins.
  void Restart(bool keep_state);
  // From now on, the job has rounds: replies to Join state the shards' frontiers, and the first
  // step that the worker has not finished.
  void set_by_round();
  // Keeps a copy of the present state.
  void SaveCheckpoint();
  // Simulates a restart of the server's process, as Restart does, that continues from the state of
  // the last SaveCheckpoint under GENERATION.
  void RollBack(Generation generation);
  // From now on, replies to heartbeats announce a checkpoint of STEP.
  void set_checkpoint_step(Step step);
  // From now on, replies to Join state this candidate of push: adaptive and the first step of its
  // trial.
  void set_push_candidate(uint32_t candidate, std::optional<Step> trial);
  // The run and generation in all further replies and frames.
  void set_run(RunId run);
  void set_generation(Generation generation);
  // The incarnation in all further replies to Join.
  void set_incarnation(Incarnation incarnation);
  // Answers the next Joins with ERRORS, in order.
  void FailJoins(std::deque<absl::Status> errors);
  // While HOLD is true, calls of Join block.
  void HoldJoins(bool hold);
  // From now on, replies to heartbeats list WORKERS as live beside the calling worker.
  void set_others(std::vector<WorkerId> workers);
  // From now on, every reply to a heartbeat says that another process uses the worker's number.
  void Fence();
  void set_lease_seconds(double lease_seconds);
  // The time that all further replies to heartbeats state.
  void set_unix_micros(int64_t unix_micros);
  // Sets the initial values of SHARD, so that no worker needs to upload them.
  void Seed(ShardId shard, std::vector<float> values);

  std::vector<float> masters(ShardId shard) const;
  // Returns the pushes in order of arrival, without repeated ones.
  std::vector<PushEntry> pushes() const;
  // Returns all pushes in order of arrival, including repeated ones.
  std::vector<PushEntry> arrivals() const;
  // Returns the requests of all Joins, including failed ones, in order of arrival.
  std::vector<JoinRequest> joins() const;
  // Returns HeartbeatRequest::stops_before of the last heartbeat.
  std::optional<Step> stops_before() const;
  // Returns the tests of the last heartbeat.
  std::vector<PrecisionTest> tests() const;
  // Returns HeartbeatRequest::test of the last heartbeat; nullopt: it had none.
  std::optional<ModelTest> model_test() const;
  // Returns HeartbeatRequest::progress of the last heartbeat; nullopt: it had none.
  std::optional<WorkerProgress> progress() const;
  int seed_count() const;
  int leave_count() const;
  // Returns the last request of Leave.
  LeaveRequest last_leave() const;
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
  absl::StatusOr<std::vector<MastersChunk>> Masters(const MastersRequest&) override;

 private:
  struct Shard {
    std::vector<float> masters;
    bool seeded = false;
    std::optional<ReadEntry> unanswered;  // a read that waits for the first values
    Version version;
    std::optional<VerdictEntry> last;
    std::map<Step, VerdictEntry> verdicts;
  };

  void BeginEpoch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  ServerFrame NewFrame() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(const SeedEntry& seed, ServerFrame& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(const PushEntry& push, ServerFrame& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(const ReadEntry& read, ServerFrame& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Partition& partition_;
  const ServerId server_;

  mutable absl::Mutex mu_;
  std::map<ShardId, Shard> shards_ ABSL_GUARDED_BY(mu_);
  std::map<ShardId, Shard> checkpoint_ ABSL_GUARDED_BY(mu_);
  std::optional<Step> checkpoint_step_ ABSL_GUARDED_BY(mu_);
  bool by_round_ ABSL_GUARDED_BY(mu_) = false;
  uint32_t push_candidate_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<Step> trial_ ABSL_GUARDED_BY(mu_);
  std::vector<PrecisionTest> tests_ ABSL_GUARDED_BY(mu_);
  std::optional<ModelTest> model_test_ ABSL_GUARDED_BY(mu_);
  std::optional<WorkerProgress> progress_ ABSL_GUARDED_BY(mu_);
  std::optional<Step> stops_before_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Peer> streams_ ABSL_GUARDED_BY(mu_);
  Judge judge_ ABSL_GUARDED_BY(mu_);
  Answer answer_ ABSL_GUARDED_BY(mu_);
  std::vector<ShardId> held_shards_ ABSL_GUARDED_BY(mu_);
  WorkerId held_by_ ABSL_GUARDED_BY(mu_);
  std::vector<ReadEntry> held_reads_ ABSL_GUARDED_BY(mu_);
  Epoch epoch_ ABSL_GUARDED_BY(mu_) = Epoch{1};
  RunId run_ ABSL_GUARDED_BY(mu_) = RunId{1};
  Generation generation_ ABSL_GUARDED_BY(mu_) = Generation{1};
  Incarnation incarnation_ ABSL_GUARDED_BY(mu_) = Incarnation{1};
  std::deque<absl::Status> join_errors_ ABSL_GUARDED_BY(mu_);
  bool hold_joins_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<JoinRequest> joins_ ABSL_GUARDED_BY(mu_);
  bool fenced_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<WorkerId> others_ ABSL_GUARDED_BY(mu_);
  double lease_seconds_ ABSL_GUARDED_BY(mu_) = 10;
  int64_t unix_micros_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<PushEntry> pushes_ ABSL_GUARDED_BY(mu_);
  std::vector<PushEntry> arrivals_ ABSL_GUARDED_BY(mu_);
  int seed_count_ ABSL_GUARDED_BY(mu_) = 0;
  int leave_count_ ABSL_GUARDED_BY(mu_) = 0;
  LeaveRequest last_leave_ ABSL_GUARDED_BY(mu_);
  int heartbeat_count_ ABSL_GUARDED_BY(mu_) = 0;
  int answer_count_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_TESTING_FAKE_SERVER_H_
