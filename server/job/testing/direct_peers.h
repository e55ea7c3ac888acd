// DirectPeers connects a lead to other jobs in the same process. For tests.
#ifndef THINWIRE_SERVER_JOB_TESTING_DIRECT_PEERS_H_
#define THINWIRE_SERVER_JOB_TESTING_DIRECT_PEERS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
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
  void Admit(ServerId server, const AdmitRequest& request, AdmitDone done) override {
    Call<AdmitReply>(server, std::move(done),
                     [&](Job& job, AdmitDone guarded) { job.Admit(request, std::move(guarded)); });
  }
  void Follow(ServerId server, const FollowRequest& request, FollowDone done) override {
    Call<FollowReply>(server, std::move(done), [&](Job& job, FollowDone guarded) {
      job.Follow(request, std::move(guarded));
    });
  }
  void Rollback(ServerId server, const RollbackRequest& request, RollbackDone done) override {
    Call<RollbackReply>(server, std::move(done), [&](Job& job, RollbackDone guarded) {
      job.Rollback(request, std::move(guarded));
    });
  }
  void SetMode(ServerId server, const SetModeRequest& request, SetModeDone done) override {
    Call<SetModeReply>(server, std::move(done), [&](Job& job, SetModeDone guarded) {
      job.SetMode(request, std::move(guarded));
    });
  }
  void SaveCheckpoint(ServerId server, const SaveCheckpointRequest& request,
                      SaveDone done) override {
    Call<SaveCheckpointReply>(server, std::move(done), [&](Job& job, SaveDone guarded) {
      job.SaveCheckpoint(request, std::move(guarded));
    });
  }
  void Clip(ServerId server, const ClipRequest& request, ClipDone done) override {
    Call<ClipReply>(server, std::move(done),
                    [&](Job& job, ClipDone guarded) { job.Clip(request, std::move(guarded)); });
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

  // Calls START(job, guarded) for the job of SERVER. GUARDED passes the reply to DONE while this
  // object exists.
  template <typename Reply, typename Start>
  void Call(ServerId server, std::function<void(absl::StatusOr<Reply>)> done, Start start) {
    Job* const job = find_(server);
    if (job == nullptr) return done(absl::UnavailableError("unreachable"));
    const auto call = std::make_shared<PendingCall<Reply>>(state_, std::move(done));
    start(*job, [call](absl::StatusOr<Reply> reply) { call->End(std::move(reply)); });
  }

  const std::function<Job*(ServerId)> find_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_TESTING_DIRECT_PEERS_H_
