// DirectPeers connects a lead to other jobs in the same process. For tests.
#ifndef THINWIRE_SERVER_JOB_TESTING_DIRECT_PEERS_H_
#define THINWIRE_SERVER_JOB_TESTING_DIRECT_PEERS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/control_rpc.h"
#include "server/job/job.h"
#include "server/protocols/peers.h"

namespace thinwire {

// Thread-safe if FIND is.
class DirectPeers final : public Peers {
 public:
  // FIND returns a server's job, or null if the server cannot be reached. A job must not be
  // destroyed while FIND returns it.
  explicit DirectPeers(std::function<Job*(ServerId)> find) : find_(std::move(find)) {}
  ~DirectPeers() override {
    absl::MutexLock lock(&state_->mu);
    state_->ended = true;
  }

  std::string NameOf(ServerId server) const override {
    return absl::StrCat("server ", server.value, " (in process)");
  }
  void Start(ServerId server, AnyPeerCall call) override {
    std::visit([&](auto& each) { CallJob(server, std::move(each)); }, call);
  }

 private:
  // Shared with the pending calls, which may end after this object is destroyed.
  struct State {
    absl::Mutex mu;
    bool ended = false;
  };
  // Ends with Unavailable if the job is destroyed without a reply.
  template <typename Reply>
  class PendingCall {
   public:
    PendingCall(std::shared_ptr<State> state, std::function<void(absl::StatusOr<Reply>)> done)
        : state_(std::move(state)), done_(std::move(done)) {}
    ~PendingCall() { End(absl::UnavailableError("the server has ended")); }

    void End(absl::StatusOr<Reply> reply) {
      absl::MutexLock lock(&state_->mu);
      if (const auto done = std::exchange(done_, nullptr); done != nullptr && !state_->ended) {
        done(std::move(reply));
      }
    }

   private:
    const std::shared_ptr<State> state_;
    std::function<void(absl::StatusOr<Reply>)> done_;
  };

  // Passes the reply to CALL while this object exists.
  template <typename Request>
  void CallJob(ServerId server, PeerCall<Request> call) {
    using Reply = ReplyTo<Request>;
    Job* const job = find_(server);
    if (job == nullptr) return call.done(absl::UnavailableError("unreachable"));
    const auto pending = std::make_shared<PendingCall<Reply>>(state_, std::move(call.done));
    job->Call(call.request,
              [pending](absl::StatusOr<Reply> reply) { pending->End(std::move(reply)); });
  }

  const std::function<Job*(ServerId)> find_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_TESTING_DIRECT_PEERS_H_
