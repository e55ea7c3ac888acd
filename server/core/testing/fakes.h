// Test doubles for a shard: payloads of given values, a very simple optimizer, an optimizer that
// records its updates, and a fake worker that creates events with all fields set.
#ifndef THINWIRE_SERVER_CORE_TESTING_FAKES_H_
#define THINWIRE_SERVER_CORE_TESTING_FAKES_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/codec/payload.h"
#include "common/memory/byte_chain.h"
#include "server/core/event.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"

namespace thinwire {

CheckedPayload Fp32Payload(std::initializer_list<float> values);
CheckedPayload Fp32Payload(std::span<const float> values);
// Returns a topk payload whose entries are the nonzero VALUES.
CheckedPayload SparsePayload(std::span<const float> values);
// Returns the decoded values of PAYLOAD. The second overload first checks PAYLOAD, which must be
// well-formed.
std::vector<float> Values(const CheckedPayload& payload);
std::vector<float> Values(const ByteChain& payload, size_t count);

// An optimizer that computes master -= learning_rate * gradient.
class PlainDescent final : public Optimizer {
 public:
  bool Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override;
};

struct RecordedUpdate {
  Update update;
  std::vector<float> sum;
};

// An optimizer that records every update and computes master -= sum, without learning rate and
// gradient scale. If it reads norms, it measures the gradient's sum of squares, and the number of
// the update in place of that of the masters.
class RecordingOptimizer final : public Optimizer {
 public:
  explicit RecordingOptimizer(bool reads_norms = false)
      : Optimizer({.kind = reads_norms ? OptimizerKind::kLars : OptimizerKind::kSgd}) {}

  SquareSums Measure(const Update& update, std::span<const float> sum,
                     std::span<const float> masters,
                     std::span<const std::span<float>> slots) const override;
  bool Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
             std::span<const std::span<float>> slots) const override;

  const std::vector<RecordedUpdate>& updates() const { return updates_; }

 private:
  mutable std::vector<RecordedUpdate> updates_;
};

// Returns a schedule with the constant learning rate 1.
Schedule ConstantRate();

// One process of a worker. It creates events of generation 0.
struct FakeWorker {
  WorkerId worker;
  Incarnation incarnation{1};

  JoinEvent Join() const { return {worker, incarnation}; }
  ReadEvent Read(uint64_t step) const;
  PushEvent Push(uint64_t step, uint32_t examples, std::initializer_list<float> values) const;
  PushEvent PushNothing(uint64_t step) const;
  ExpireEvent Expire() const { return {worker, incarnation}; }
  ReturnEvent Return() const { return {worker, incarnation}; }
  LeaveEvent Leave() const { return {worker, incarnation}; }
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_FAKES_H_
