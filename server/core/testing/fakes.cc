#include "server/core/testing/fakes.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "common/codec/codec_cases.h"

namespace thinwire {

CheckedPayload Fp32Payload(std::initializer_list<float> values) {
  return Fp32Payload(std::span<const float>(values.begin(), values.size()));
}

CheckedPayload Fp32Payload(std::span<const float> values) {
  const auto owner = std::make_shared<const std::vector<float>>(values.begin(), values.end());
  return CheckPayload(LendFp32(*owner, owner), values.size()).value();
}

CheckedPayload SparsePayload(std::span<const float> values) {
  std::vector<uint32_t> indices;
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) indices.push_back(i);
  }
  return CheckPayload(EncodeEntries(values, indices), values.size()).value();
}

std::vector<float> Values(const CheckedPayload& payload) { return Decoded(payload); }
std::vector<float> Values(const ByteChain& payload, size_t count) {
  return Decoded(payload, count);
}

bool PlainDescent::Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
                         std::span<const std::span<float>>) const {
  for (size_t i = 0; i < sum.size(); ++i) {
    masters[i] -= update.learning_rate * update.gradient_scale * sum[i];
  }
  return false;
}

SquareSums RecordingOptimizer::Measure(const Update& update, std::span<const float> sum,
                                       std::span<const float>,
                                       std::span<const std::span<float>>) const {
  SquareSums sums = {.masters = static_cast<double>(update.number)};
  for (const float value : sum) {
    const float mean = update.gradient_scale * value;
    sums.update += double{mean} * mean;
  }
  return sums;
}

bool RecordingOptimizer::Apply(const Update& update, std::span<const float> sum,
                               std::span<float> masters, std::span<const std::span<float>>) const {
  updates_.push_back({update, {sum.begin(), sum.end()}});
  std::ranges::transform(masters, sum, masters.begin(), std::minus<>());
  return false;
}

Schedule ConstantRate() { return Schedule::Make({.learning_rate = 1}).value(); }

ReadEvent FakeWorker::Read(uint64_t step) const {
  ReadEvent read;
  read.worker = worker;
  read.incarnation = incarnation;
  read.step = Step{step};
  return read;
}

PushEvent FakeWorker::Push(uint64_t step, uint32_t examples,
                           std::initializer_list<float> values) const {
  PushEvent push = PushNothing(step);
  push.examples = examples;
  push.payload = Fp32Payload(values);
  return push;
}

PushEvent FakeWorker::PushNothing(uint64_t step) const {
  PushEvent push;
  push.worker = worker;
  push.incarnation = incarnation;
  push.step = Step{step};
  return push;
}

}  // namespace thinwire
