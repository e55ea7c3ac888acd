// JobServer: a real server's Job at the other end of an in-process transport, for one worker. What
// gRPC does between the two in a deployment, a queue and a thread do here.
#ifndef THINWIRE_TESTS_JOB_SERVER_H_
#define THINWIRE_TESTS_JOB_SERVER_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/transport/event_loop.h"
#include "client/transport/in_process_transport.h"
#include "common/clock.h"
#include "server/edge/job.h"

namespace thinwire {

// Thread-safe.
class JobServer final : public InProcessServer {
 public:
  // JOB outlives this.
  explicit JobServer(Job& job);
  // Waits until every session has ended.
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
  std::map<uint64_t, std::unique_ptr<Call>> calls_ ABSL_GUARDED_BY(mu_);  // erased on the loop
  client::EventLoop loop_;  // on which all calls into sessions are made
};

}  // namespace thinwire

#endif  // THINWIRE_TESTS_JOB_SERVER_H_
