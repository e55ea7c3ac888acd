// Network: connects the real jobs and the real client cores of a cluster in virtual time, in place
// of gRPC. Streams and calls have a latency and a rate, break, and end with a process, as over TCP:
// the bytes of a stream arrive in order or not at all.
//
//   client core -> Transport -> Network -> Session -> Job
//   Job of the lead -> Peers -> Network -> Job
//
// Frames take bandwidth of the links (link_model.h), and FrameCosts of their processes. Calls take
// the latency of the links only.
#ifndef THINWIRE_SIM_NETWORK_H_
#define THINWIRE_SIM_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/transport/transport.h"
#include "common/base/ids.h"
#include "common/time/virtual_time.h"
#include "proto/frame.h"
#include "server/job/job.h"
#include "server/protocols/peers.h"
#include "sim/link_model.h"

namespace thinwire::sim {

// The links of the machines of a cluster.
struct ClusterLinks {
  LinkSpec worker = {.latency = absl::Microseconds(500)};
  LinkSpec server = {.latency = absl::Microseconds(500)};
  // Server i shares the machine and the link of worker i; `server` is unused. REQUIRES: there are
  // not more servers than workers.
  bool servers_beside_workers = false;
  // A stream takes the next frame while fewer bytes of the earlier ones have not arrived.
  uint64_t buffer_bytes = uint64_t{1} << 20;
};

// The times that a process works before a frame leaves, and after it has arrived. The work of a
// process on frames is done one after another. Null: no time.
struct FrameCosts {
  std::function<absl::Duration(const WorkerFrame&)> worker_sends;
  std::function<absl::Duration(const WorkerFrame&)> server_receives;
  std::function<absl::Duration(const ServerFrame&)> server_sends;
  std::function<absl::Duration(const ServerFrame&)> worker_receives;
};

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
  using OnBytes = std::function<void(bool to_server, uint64_t bytes)>;
  void WatchBytes(OnBytes on_bytes) { on_bytes_ = std::move(on_bytes); }

  // While the network is ideal, frames and calls take no time, and no bytes are told to OnBytes.
  void SetIdeal(bool ideal) { ideal_ = ideal; }

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
  class Stream;
  class WorkerStream;
  class WorkerTransport;
  class LeadPeers;
  template <typename Reply>
  class PendingCall;
  // The work of a process on frames.
  struct Work {
    absl::Duration end;
    uint64_t waiting = 0;  // pieces of work that have not ended
  };

  // Returns the job that WORKER reaches at SERVER; null if it reaches none.
  Job* Reach(WorkerId worker, ServerId server) const;
  // Calls START(job, reply), where JOB is what REACH returns when the call arrives. DONE receives
  // the reply, or the error of the connection, or DeadlineExceeded after TIMEOUT, while *ALIVE.
  // LATENCY: one way.
  template <typename Reply>
  void Call(std::function<Job*()> reach, absl::Duration latency, absl::Duration timeout,
            std::shared_ptr<const bool> alive,
            std::function<void(Job&, const std::shared_ptr<PendingCall<Reply>>&)> start,
            std::function<void(absl::StatusOr<Reply>)> done);
  // Calls ACTION(stream) for each stream that exists.
  template <typename Action>
  void ForEachStream(Action action);

  size_t MachineOf(ServerId server) const { return first_server_ + server.value; }
  // Returns the time that a message without bytes takes between two machines.
  absl::Duration Latency(size_t a, size_t b) const;
  // Sends BYTES between two machines and calls DELIVERED when they have arrived.
  void Send(size_t from, size_t to, uint64_t bytes, Executor::Task delivered);
  void Count(bool to_server, uint64_t bytes);
  // Calls DONE when a process has worked for COST, after its earlier work.
  void Do(Work& work, absl::Duration cost, Executor::Task done);

  VirtualTime& time_;
  const FrameCosts costs_;
  const uint64_t buffer_bytes_;
  const size_t first_server_;          // its machine
  const std::vector<LinkSpec> specs_;  // of the machines
  LinkModel links_;
  bool ideal_ = false;
  std::vector<Work> worker_work_, server_work_;
  std::vector<Job*> jobs_;  // null: no process
  std::set<std::pair<WorkerId, ServerId>> cut_;
  std::set<std::pair<WorkerId, ServerId>> cut_calls_;
  std::set<std::pair<WorkerId, ServerId>> breaks_;  // see BreakAfterFrame
  std::set<ServerId> cut_from_lead_;
  std::map<ServerId, absl::Duration> repeated_;
  std::vector<std::weak_ptr<Stream>> streams_;
  OnBytes on_bytes_;  // null: nobody watches
};

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_NETWORK_H_
