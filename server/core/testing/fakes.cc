#include "server/core/testing/fakes.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "common/codec/codec.h"
#include "common/codec/entries.h"

namespace thinwire {

ByteChain Fp32Payload(std::initializer_list<float> values) {
  return Fp32Payload(std::span<const float>(values.begin(), values.size()));
}

ByteChain Fp32Payload(std::span<const float> values) {
  std::vector<std::byte> bytes(1 + values.size_bytes());
  bytes[0] = static_cast<std::byte>(CodecId::kFp32);
  if (!values.empty()) std::memcpy(bytes.data() + 1, values.data(), values.size_bytes());
  return ByteChain(std::move(bytes));
}

ByteChain SparsePayload(std::span<const float> values) {
  std::vector<uint32_t> indices;
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) indices.push_back(i);
  }
  return EncodeEntries(values, indices);
}

std::vector<float> Values(const ByteChain& payload, size_t count) {
  std::vector<float> values(count);
  DecodePayload(payload, values);
  return values;
}

void PlainDescent::Apply(const Update& update, std::span<const float> sum, std::span<float> masters,
                         std::span<const std::span<float>>) const {
  for (size_t i = 0; i < sum.size(); ++i) {
    masters[i] -= update.learning_rate * update.gradient_scale * sum[i];
  }
}

void RecordingOptimizer::Apply(const Update& update, std::span<const float> sum,
                               std::span<float> masters, std::span<const std::span<float>>) const {
  updates_.push_back({update, {sum.begin(), sum.end()}});
  std::ranges::transform(masters, sum, masters.begin(), std::minus<>());
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
