#include "server/protocols/membership/admission_follower.h"

#include <glog/logging.h>

#include "common/base/ids.h"

namespace thinwire {

void AdmissionFollower::Admit(const AdmitRequest& request,
                              const std::function<void(absl::StatusOr<AdmitReply>)>& done) {
  if (state_.identity.run != RunId{request.run()}) {
    // No worker has joined this server yet, so processes of another run may be forgotten.
    state_.identity.run = RunId{request.run()};
    tokens_.set_key(request.token_key());
    state_.membership.Forget();
    LOG(INFO) << "admitted to run " << NameOf(state_.identity.run);
  }
  if (request.begins_again() && state_.membership.awaits_return()) start_.BeginAgain();
  const WorkerId worker{request.worker()};
  state_.membership.Announce(worker, Incarnation{request.incarnation()});
  AdmitReply reply;
  reply.set_epoch(state_.identity.epoch.value);
  reply.set_recovered(state_.recovered);
  // Without a model there is no run record yet, which will be followed by all members.
  if (!stored_.run().has_value()) return done(reply);
  stored_.RecordMember(worker, [done, reply] { done(reply); });
}

}  // namespace thinwire
