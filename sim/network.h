// Network: connects the real jobs and the real client cores of a cluster in virtual time, in place
// of gRPC. Streams and calls have a latency and a rate, break, and end with a process, as over TCP:
// the bytes of a stream arrive in order or not at all.
//
//   client core -> Transport -> Network -> Session -> Job
//   Job of the lead -> Peers -> Network -> Job
#ifndef THINWIRE_SIM_NETWORK_H_
#define THINWIRE_SIM_NETWORK_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/transport/transport.h"
#include "common/ids.h"
#include "common/time/virtual_time.h"
#include "proto/frame.h"
#include "server/edge/job.h"
#include "server/edge/lead/peers.h"

namespace thinwire::sim {

struct LinkOptions {
  absl::Duration latency = absl::Milliseconds(1);  // one way
  // Of each direction of each stream. The frames of a stream are sent one after another.
  double bytes_per_second = std::numeric_limits<double>::infinity();
};

// Not thread-safe.
class Network {
 public:
  // TIME must outlive the network.
  Network(VirtualTime& time, uint32_t server_count, LinkOptions link);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // A process of SERVER accepts calls and streams for JOB. Call Detach before the job is destroyed.
  void Attach(ServerId server, Job& job);
  // The process has ended: its streams break, and its pending calls fail.
  void Detach(ServerId server);

  // Return the connections of a process. Must be destroyed before the network. ON_FRAME is called
  // before a frame of a server arrives at the worker's process.
  using OnFrame = std::function<void(const ServerFrame&)>;
  std::unique_ptr<Transport> Connect(WorkerId worker, OnFrame on_frame);
  std::unique_ptr<Peers> ConnectLead();

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

  // Returns the job that WORKER reaches at SERVER; null if it reaches none.
  Job* Reach(WorkerId worker, ServerId server) const;
  // Calls START(job, reply), where JOB is what REACH returns when the call arrives. DONE receives
  // the reply, or the error of the connection, or DeadlineExceeded after TIMEOUT, while *ALIVE.
  template <typename Reply>
  void Call(std::function<Job*()> reach, absl::Duration timeout, std::shared_ptr<const bool> alive,
            std::function<void(Job&, const std::shared_ptr<PendingCall<Reply>>&)> start,
            std::function<void(absl::StatusOr<Reply>)> done);
  // Calls ACTION(stream) for each stream that exists.
  template <typename Action>
  void ForEachStream(Action action);

  VirtualTime& time_;
  const LinkOptions link_;
  std::vector<Job*> jobs_;  // null: no process
  std::set<std::pair<WorkerId, ServerId>> cut_;
  std::set<std::pair<WorkerId, ServerId>> cut_calls_;
  std::set<std::pair<WorkerId, ServerId>> breaks_;  // see BreakAfterFrame
  std::set<ServerId> cut_from_lead_;
  std::map<ServerId, absl::Duration> repeated_;
  std::vector<std::weak_ptr<Stream>> streams_;
};

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_NETWORK_H_
