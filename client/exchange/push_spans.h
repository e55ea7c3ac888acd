// PushSpans traces how long the pushes of a step wait for their verdicts: one span per server, from
// the first push that is queued until the last verdict.
#ifndef THINWIRE_CLIENT_EXCHANGE_PUSH_SPANS_H_
#define THINWIRE_CLIENT_EXCHANGE_PUSH_SPANS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/time/trace.h"

namespace thinwire::client {

// Not thread-safe.
class PushSpans {
 public:
  // TRACER may be null: then nothing is traced. Both arguments must outlive this object.
  PushSpans(Tracer* tracer, const Partition& partition, Step step)
      : tracer_(tracer), partition_(partition), step_(step) {
    if (tracer_ == nullptr) return;
    for (uint32_t s = 0; s < partition_.server_count(); ++s) {
      servers_.push_back(
          {.begin = std::nullopt, .missing_count = partition_.ShardsOf(ServerId{s}).size()});
    }
  }
  void Queued(ShardId shard) {
    if (tracer_ == nullptr) return;
    std::optional<absl::Time>& begin = servers_[partition_.server(shard).value].begin;
    if (!begin.has_value()) begin = tracer_->Now();
  }
  // Call once per queued shard.
  void Judged(ShardId shard) {
    if (tracer_ == nullptr) return;
    const uint32_t server = partition_.server(shard).value;
    if (--servers_[server].missing_count > 0) return;
    tracer_->Add({.lane = "push to server",
                  .lane_number = server,
                  .name = "push until verdicts",
                  .begin = *servers_[server].begin,
                  .end = tracer_->Now(),
                  .labels = {.step = step_}});
  }

 private:
  struct Server {
    std::optional<absl::Time> begin;
    size_t missing_count = 0;  // verdicts
  };

  Tracer* const tracer_;
  const Partition& partition_;
  const Step step_;
  std::vector<Server> servers_;  // by server number
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_PUSH_SPANS_H_
