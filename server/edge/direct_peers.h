// DirectPeers connects a lead to other jobs in the same process. For tests.
#ifndef THINWIRE_SERVER_EDGE_DIRECT_PEERS_H_
#define THINWIRE_SERVER_EDGE_DIRECT_PEERS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/edge/job.h"
#include "server/edge/peers.h"

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
    Job* const job = find_(server);
    if (job == nullptr) return done(absl::UnavailableError("unreachable"));
    job->Admit(request, UntilTheEnd<AdmitReply>(std::move(done)));
  }
  void Scale(ServerId server, const ScaleRequest& request, ScaleDone done) override {
    Job* const job = find_(server);
    if (job == nullptr) return done(absl::UnavailableError("unreachable"));
    job->Scale(request, UntilTheEnd<ScaleReply>(std::move(done)));
  }

 private:
  // Shared with the pending calls, which may end after this object is destroyed.
  struct State {
    absl::Mutex mu;
    bool ended = false;
  };
  // Returns a function that calls DONE, unless this object is destroyed.
  template <typename Reply>
  Job::Done<Reply> UntilTheEnd(Job::Done<Reply> done) const {
    return [state = state_, done = std::move(done)](absl::StatusOr<Reply> reply) {
      absl::MutexLock lock(&state->mu);
      if (!state->ended) done(std::move(reply));
    };
  }

  const std::function<Job*(ServerId)> find_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_DIRECT_PEERS_H_
