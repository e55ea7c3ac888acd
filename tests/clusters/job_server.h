// JobServer connects one worker's in-process transport to a real server's Job. A queue and a thread
// replace gRPC.
#ifndef THINWIRE_TESTS_CLUSTERS_JOB_SERVER_H_
#define THINWIRE_TESTS_CLUSTERS_JOB_SERVER_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/testing/in_process_transport.h"
#include "common/time/clock.h"
#include "common/time/thread_executor.h"
#include "server/job/job.h"

namespace thinwire {

// Thread-safe.
class JobServer final : public InProcessServer {
 public:
  // JOB must outlive this object.
  explicit JobServer(Job& job);
  // Blocks until all sessions have ended.
  ~JobServer() override;

  void Opened(uint64_t stream, Peer peer) override;
  void Frame(uint64_t stream, const ByteChain& frame) override;
  void Closed(uint64_t stream) override;
  absl::StatusOr<JoinReply> Join(const JoinRequest& request) override;
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) override;
  absl::StatusOr<LeaveReply> Leave(const LeaveRequest& request) override;

 private:
  struct Call;

  void Deliver(Call& call);
  void Finish(uint64_t stream, const absl::Status& status);

  Job& job_;
  SteadyClock clock_;
  absl::Mutex mu_;
  // Maps each stream number to the stream's state. Only the thread of loop_ removes elements.
  std::map<uint64_t, std::unique_ptr<Call>> calls_ ABSL_GUARDED_BY(mu_);
  ThreadExecutor loop_;  // the thread of this loop makes all calls to sessions
};

}  // namespace thinwire

#endif  // THINWIRE_TESTS_CLUSTERS_JOB_SERVER_H_
