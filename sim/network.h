// Network: connects the real jobs and the real client cores of a cluster in virtual time, in place
// of gRPC. Streams and calls have a latency and a rate, break, and end with a process, as over TCP:
// the bytes of a stream arrive in order or not at all.
//
//   client core -> Transport -> Network -> Session -> Job
//   Job of the lead -> Peers -> Network -> Job
//
// Frames (stream.h) take bandwidth of the links and time of their processes (wires.h). Calls
// (call.h) take the latency of the links only.
#ifndef THINWIRE_SIM_NETWORK_H_
#define THINWIRE_SIM_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/transport/transport.h"
#include "common/base/ids.h"
#include "common/time/virtual_time.h"
#include "proto/frame.h"
#include "server/job/job.h"
#include "server/protocols/peers.h"
#include "sim/simulated_stream.h"
#include "sim/wires.h"

namespace thinwire::sim {

// Not thread-safe.
class Network {
 public:
  // TIME must outlive the network.
  Network(VirtualTime& time, uint32_t worker_count, uint32_t server_count,
          const ClusterLinks& links, FrameCosts costs = {});
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // A process of SERVER accepts calls and streams for JOB. Call Detach before the job is destroyed.
  void Attach(ServerId server, Job& job);
  // The process has ended: its streams break, and its pending calls fail.
  void Detach(ServerId server);

  // Return the connections of a process. Must be destroyed before the network. ON_FRAME is called
  // before a frame of a server arrives at the worker's process; null: nobody watches. It returns
  // whether it has changed the frame.
  using OnFrame = std::function<bool(ServerFrame&)>;
  std::unique_ptr<Transport> Connect(WorkerId worker, OnFrame on_frame);
  std::unique_ptr<Peers> ConnectLead();

  // Calls ON_BYTES(to_server, bytes) before a frame leaves.
  void WatchBytes(Wires::OnBytes on_bytes) { wires_.WatchBytes(std::move(on_bytes)); }

  // While the network is ideal, frames and calls take no time, and no bytes are told to OnBytes.
  void SetIdeal(bool ideal) { wires_.SetIdeal(ideal); }

  // Breaks the streams between WORKER and SERVER. All frames under way are lost.
  void Break(WorkerId worker, ServerId server);
  // Breaks them when the next frame of WORKER has arrived at SERVER, so that its answers are lost.
  void BreakAfterFrame(WorkerId worker, ServerId server) { breaks_.insert({worker, server}); }
  // While a pair is cut, its streams are broken, and calls do not arrive.
  void Cut(WorkerId worker, ServerId server, bool cut);
  // While the calls of a pair are cut, the worker's calls do not arrive, but its stream stays.
  void CutCalls(WorkerId worker, ServerId server, bool cut);
  // While a server is cut off the lead, the lead's calls do not arrive at it.
  void CutFromLead(ServerId server, bool cut);
  // The next request of the lead to change the rule of SERVER arrives again after DELAY.
  void RepeatSetMode(ServerId server, absl::Duration delay) { repeated_[server] = delay; }

 private:
  class WorkerTransport;
  class LeadPeers;

  // Returns the job that WORKER reaches at SERVER; null if it reaches none.
  Job* Reach(WorkerId worker, ServerId server) const;
  // Calls ACTION(stream) for each stream that exists.
  template <typename Action>
  void ForEachStream(Action action);

  Wires wires_;
  std::vector<Job*> jobs_;  // null: no process
  std::set<std::pair<WorkerId, ServerId>> cut_;
  std::set<std::pair<WorkerId, ServerId>> cut_calls_;
  std::set<std::pair<WorkerId, ServerId>> breaks_;  // see BreakAfterFrame
  std::set<ServerId> cut_from_lead_;
  std::map<ServerId, absl::Duration> repeated_;
  std::vector<std::weak_ptr<SimulatedStream>> streams_;
};

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_NETWORK_H_
