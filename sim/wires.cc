#include "sim/wires.h"

#include <algorithm>

namespace thinwire::sim {
namespace {

// Returns the links of the machines: of the workers, then of the servers.
std::vector<LinkSpec> LinksOf(uint32_t worker_count, uint32_t server_count,
                              const ClusterLinks& links) {
  std::vector<LinkSpec> all(worker_count, links.worker);
  if (!links.servers_beside_workers) all.resize(worker_count + server_count, links.server);
  return all;
}

}  // namespace

Wires::Wires(VirtualTime& time, uint32_t worker_count, uint32_t server_count,
             const ClusterLinks& links, FrameCosts costs)
    : time_(time),
      costs_(std::move(costs)),
      buffer_bytes_(links.buffer_bytes),
      first_server_(links.servers_beside_workers ? 0 : worker_count),
      specs_(LinksOf(worker_count, server_count, links)),
      sites_(links.sites),
      links_(specs_, time, sites_),
      worker_work_(worker_count),
      server_work_(server_count) {}

absl::Duration Wires::Latency(size_t a, size_t b) const {
  if (ideal_ || a == b) return absl::ZeroDuration();
  return specs_[a].latency + specs_[b].latency + sites_.Between(a, b);
}

void Wires::Send(size_t from, size_t to, uint64_t bytes, Executor::Task delivered) {
  if (ideal_) return time_.After(absl::ZeroDuration(), std::move(delivered));
  links_.Send(from, to, bytes, std::move(delivered));
}

void Wires::Count(bool to_server, uint64_t bytes) const {
  if (!ideal_ && on_bytes_ != nullptr) on_bytes_(to_server, bytes);
}

void Wires::Do(Work& work, absl::Duration cost, Executor::Task done) {
  if (ideal_) cost = absl::ZeroDuration();
  if (cost == absl::ZeroDuration() && work.waiting == 0) return done();
  work.end = std::max(work.end, time_.elapsed()) + cost;
  ++work.waiting;
  time_.At(work.end, [&work, done = std::move(done)]() mutable {
    --work.waiting;
    done();
  });
}

}  // namespace thinwire::sim
