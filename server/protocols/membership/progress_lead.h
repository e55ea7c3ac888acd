// ProgressLead keeps the newest statement of each worker about its training, for StatusReply.
#ifndef THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_PROGRESS_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_PROGRESS_LEAD_H_

#include <cstdint>
#include <map>

#include "proto/control.pb.h"
#include "server/protocols/protocol.h"

namespace thinwire {

class ProgressLead final : public Protocol {
 public:
  void Heard(const HeartbeatRequest& request) override {
    if (!request.has_progress() && !request.has_test()) return;
    WorkerProgress& worker = workers_[request.worker()];
    if (request.has_progress()) worker = request.progress();
    if (request.has_test()) *worker.mutable_test() = request.test();
  }

  void FillIn(StatusReply& reply) const override {
    for (const auto& [worker, progress] : workers_) (*reply.mutable_progress())[worker] = progress;
  }

 private:
  std::map<uint32_t, WorkerProgress> workers_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_PROGRESS_LEAD_H_
