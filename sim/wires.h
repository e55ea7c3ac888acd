// Wires: the links between the machines of a cluster, and the work of its processes on frames, in
// virtual time. The machines are those of the workers, then those of the servers.
#ifndef THINWIRE_SIM_WIRES_H_
#define THINWIRE_SIM_WIRES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/executor.h"
#include "common/time/virtual_time.h"
#include "proto/frame.h"
#include "sim/link_model.h"

namespace thinwire::sim {

// The links of the machines of a cluster.
struct ClusterLinks {
  LinkSpec worker = {.latency = absl::Microseconds(500)};
  LinkSpec server = {.latency = absl::Microseconds(500)};
  // Server i shares the machine and the link of worker i; `server` is unused. REQUIRES: there are
  // not more servers than workers.
  bool servers_beside_workers = false;
  Sites sites;  // of the machines of the workers, then of the servers
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
class Wires {
 public:
  // The work of a process on frames.
  struct Work {
    absl::Duration end;
    uint64_t waiting = 0;  // pieces of work that have not ended
  };

  // TIME must outlive this object.
  Wires(VirtualTime& time, uint32_t worker_count, uint32_t server_count, const ClusterLinks& links,
        FrameCosts costs);

  VirtualTime& time() const { return time_; }
  const FrameCosts& costs() const { return costs_; }
  uint64_t buffer_bytes() const { return buffer_bytes_; }

  size_t MachineOf(WorkerId worker) const { return worker.value; }
  size_t MachineOf(ServerId server) const { return first_server_ + server.value; }
  Work& WorkOf(WorkerId worker) { return worker_work_[worker.value]; }
  Work& WorkOf(ServerId server) { return server_work_[server.value]; }

  // Calls ON_BYTES(to_server, bytes) before a frame leaves.
  using OnBytes = std::function<void(bool to_server, uint64_t bytes)>;
  void WatchBytes(OnBytes on_bytes) { on_bytes_ = std::move(on_bytes); }

  // While the wires are ideal, messages and work take no time, and no bytes are told to OnBytes.
  void SetIdeal(bool ideal) { ideal_ = ideal; }

  // Returns the time that a message without bytes takes between two machines.
  absl::Duration Latency(size_t a, size_t b) const;
  // Sends BYTES between two machines and calls DELIVERED when they have arrived.
  void Send(size_t from, size_t to, uint64_t bytes, Executor::Task delivered);
  // Tells OnBytes of a frame.
  void Count(bool to_server, uint64_t bytes) const;
  // Calls DONE when a process has worked for COST, after its earlier work.
  void Do(Work& work, absl::Duration cost, Executor::Task done);

 private:
  VirtualTime& time_;
  const FrameCosts costs_;
  const uint64_t buffer_bytes_;
  const size_t first_server_;          // its machine
  const std::vector<LinkSpec> specs_;  // of the machines
  const Sites sites_;
  LinkModel links_;
  bool ideal_ = false;
  std::vector<Work> worker_work_, server_work_;
  OnBytes on_bytes_;  // null: nobody watches
};

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_WIRES_H_
