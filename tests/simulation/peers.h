// SimulatedPeers is the connection of a simulated lead to the other servers (Peers). PeerWire
// carries the requests and replies of all calls: each takes a random number of ticks, and while
// faults are on, it may be lost.
//
//   the called server does not run or is suspended   Unavailable
//   no reply, or one that is lost or too late        DeadlineExceeded
//
// A request arrives before the end of its call and before the end of the lead's process, or never.
// While faults are on, a copy of a request of SetMode may arrive much later.
// Not thread-safe.
#ifndef THINWIRE_TESTS_SIMULATION_PEERS_H_
#define THINWIRE_TESTS_SIMULATION_PEERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "proto/control.pb.h"
#include "server/core/testing/random_events.h"
#include "server/edge/lead/peers.h"
#include "tests/simulation/network.h"
#include "tests/simulation/server.h"

namespace thinwire::simulation {

class PeerWire {
 public:
  // FIND returns the process of a server, or null if it does not run.
  PeerWire(uint64_t seed, std::function<Server*(ServerId)> find)
      : random_(seed), find_(std::move(find)) {}

  void SetFaults(const NetworkFaults& faults) { faults_ = faults; }
  Server* Find(ServerId server) const { return find_(server); }
  // Calls DELIVER after a random time or, if the message is lost, never.
  void Send(std::function<void()> deliver);
  // Calls DELIVER, with some probability, after a random time that is longer than most calls, when
  // SERVER runs.
  void Repeat(ServerId server, std::function<void(Server&)> deliver);
  void After(uint64_t ticks, std::function<void()> work) {
    due_.emplace(now_ + ticks, std::move(work));
  }
  // Runs everything that is due at tick NOW.
  void Run(uint64_t now);

 private:
  void DeliverLate(ServerId server, const std::function<void(Server&)>& deliver);

  SeededRandom random_;
  const std::function<Server*(ServerId)> find_;
  NetworkFaults faults_;
  uint64_t now_ = 0;
  std::multimap<uint64_t, std::function<void()>> due_;
};

class SimulatedPeers final : public Peers {
 public:
  // WIRE must outlive this object.
  explicit SimulatedPeers(PeerWire& wire) : wire_(wire) {}

  std::string NameOf(ServerId server) const override;
  void Admit(ServerId server, const AdmitRequest& request, AdmitDone done) override;
  void Follow(ServerId server, const FollowRequest& request, FollowDone done) override;
  void Rollback(ServerId server, const RollbackRequest& request, RollbackDone done) override;
  void SetMode(ServerId server, const SetModeRequest& request, SetModeDone done) override;
  // No operator of the simulation asks for a checkpoint.
  void SaveCheckpoint(ServerId, const SaveCheckpointRequest&, SaveDone done) override {
    done(absl::UnimplementedError("not simulated"));
  }
  void Clip(ServerId server, const ClipRequest& request, ClipDone done) override;

 private:
  template <typename Reply>
  using Done = std::function<void(absl::StatusOr<Reply>)>;

  // Calls START(process, done) at SERVER, and DONE with the reply.
  template <typename Reply, typename Start>
  void Call(ServerId server, Done<Reply> done, Start start);

  PeerWire& wire_;
  const std::shared_ptr<bool> exists_ = std::make_shared<bool>(true);
};

}  // namespace thinwire::simulation

#endif  // THINWIRE_TESTS_SIMULATION_PEERS_H_
