#include "tests/simulation/peers.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace thinwire::simulation {
namespace {

// Longer than the longest time of a request.
constexpr uint64_t kCallTicks = 40;
constexpr uint64_t kLateTicks = 400;

absl::Status NotSimulated() { return absl::UnimplementedError("not simulated as a call"); }

}  // namespace

void PeerWire::Send(std::function<void()> deliver) {
  if (random_.Percent(faults_.lost_percent)) return;
  After(1 + random_.Below(faults_.longest_ticks), std::move(deliver));
}

void PeerWire::Repeat(ServerId server, std::function<void(Server&)> deliver) {
  if (!random_.Percent(faults_.twice_percent)) return;
  After(random_.Below(kLateTicks),
        [this, server, deliver = std::move(deliver)] { DeliverLate(server, deliver); });
}

void PeerWire::DeliverLate(ServerId server, const std::function<void(Server&)>& deliver) {
  if (Server* const process = Find(server)) return deliver(*process);
  After(1, [this, server, deliver] { DeliverLate(server, deliver); });
}

void PeerWire::Run(uint64_t now) {
  now_ = now;
  while (!due_.empty() && due_.begin()->first <= now) due_.extract(due_.begin()).mapped()();
}

std::string SimulatedPeers::NameOf(ServerId server) const {
  return absl::StrCat("server ", server.value);
}

template <typename Reply, typename Start>
void SimulatedPeers::Call(ServerId server, Done<Reply> done, Start start) {
  const std::weak_ptr<bool> exists = exists_;
  const auto waiting = std::make_shared<Done<Reply>>(std::move(done));
  const auto end = [exists, waiting](absl::StatusOr<Reply> reply) {
    if (exists.expired()) return;
    if (const Done<Reply> once = std::exchange(*waiting, nullptr)) once(std::move(reply));
  };
  wire_.After(kCallTicks, [end] { end(absl::DeadlineExceededError("no reply")); });
  wire_.Send([&wire = wire_, server, exists, end, start] {
    if (exists.expired()) return;
    Server* const process = wire.Find(server);
    if (process == nullptr) return end(absl::UnavailableError("the server does not run"));
    start(*process, [&wire, end](absl::StatusOr<Reply> reply) {
      wire.Send([end, reply = std::move(reply)] { end(reply); });
    });
  });
}

void SimulatedPeers::Admit(ServerId, const AdmitRequest&, AdmitDone done) { done(NotSimulated()); }

void SimulatedPeers::Follow(ServerId, const FollowRequest&, FollowDone done) {
  done(NotSimulated());
}

void SimulatedPeers::Rollback(ServerId, const RollbackRequest&, RollbackDone done) {
  done(NotSimulated());
}

void SimulatedPeers::SetMode(ServerId server, const SetModeRequest& request, SetModeDone done) {
  Call<SetModeReply>(server, std::move(done), [request](Server& process, SetModeDone reply) {
    process.SetMode(request, std::move(reply));
  });
  wire_.Repeat(server, [request](Server& process) {
    process.SetMode(request, [](const absl::StatusOr<SetModeReply>&) {});
  });
}

void SimulatedPeers::Clip(ServerId server, const ClipRequest& request, ClipDone done) {
  Call<ClipReply>(server, std::move(done), [request](Server& process, ClipDone reply) {
    process.Clip(request, std::move(reply));
  });
}

}  // namespace thinwire::simulation
