#include "experiments/cluster/ring.h"

#include <algorithm>
#include <utility>

#include "common/codec/payload.h"
#include "common/memory/byte_chain.h"
#include "kernels/arithmetic.h"

namespace thinwire::lab {

RingChunk RingChunkOf(size_t chunk, size_t value_count, size_t worker_count) {
  const size_t first = chunk * value_count / worker_count;
  return {.first = first, .count = (chunk + 1) * value_count / worker_count - first};
}

void SumRingChunk(const Codec& codec, size_t chunk, Gradients gradients, std::span<float> sum) {
  const size_t worker_count = gradients.size();
  const auto [first, count] = RingChunkOf(chunk, sum.size(), worker_count);
  const auto values_of = [&, first = first, count = count](size_t worker) {
    return std::span(gradients[worker % worker_count]).subspan(first, count);
  };
  const std::span<float> values = sum.subspan(first, count);
  std::vector<std::byte> bytes(codec.MaxPayloadBytes(count));
  const auto send = [&, count = count] {
    if (codec.lossless()) return;
    const size_t size = codec.Encode(values, {}, bytes);
    DecodePayload(EncodedPayload(ByteChain(std::span(bytes).first(size), nullptr), count), values);
  };
  std::ranges::copy(values_of(chunk), values.begin());
  for (size_t hop = 1; hop < worker_count; ++hop) {
    send();
    kernels::Add(values_of(chunk + hop), values);
  }
  if (worker_count > 1) send();
}

Ring::Ring(size_t value_count, size_t worker_count, std::unique_ptr<const Codec> codec,
           const CodecCosts& costs, VirtualTime& queue, LinkModel& network,
           std::function<void(size_t worker)> done)
    : value_count_(value_count),
      codec_(std::move(codec)),
      costs_(costs),
      network_(network),
      done_(std::move(done)),
      processors_(worker_count, queue),
      workers_(worker_count) {}

void Ring::Begin(size_t worker) {
  if (workers_.size() == 1) return done_(worker);
  workers_[worker].ready = true;
  const size_t count = RingChunkOf(worker, value_count_, workers_.size()).count;
  processors_.Run(worker, costs_.Encode(codec_->id(), count), [this, worker] {
    Send(worker, {.step = workers_[worker].step, .chunk = worker, .hop = 1});
  });
  for (const Message& message : std::exchange(workers_[worker].early, {})) {
    Receive(worker, message);
  }
}

void Ring::Send(size_t worker, Message message) {
  const size_t receiver = (worker + 1) % workers_.size();
  const size_t count = RingChunkOf(message.chunk, value_count_, workers_.size()).count;
  network_.Send(worker, receiver, codec_->MaxPayloadBytes(count),
                [this, receiver, message] { Receive(receiver, message); });
}

void Ring::Receive(size_t worker, Message message) {
  Worker& state = workers_[worker];
  if (!state.ready || message.step != state.step) return state.early.push_back(message);
  const size_t hop_count = workers_.size() - 1;  // of reduce-scatter
  const bool was_complete = message.hop > hop_count;
  const bool goes_on = message.hop < 2 * hop_count;
  Message next = message;
  ++next.hop;
  const size_t count = RingChunkOf(message.chunk, value_count_, workers_.size()).count;
  absl::Duration work = costs_.Decode(codec_->id(), count);
  if (was_complete) {
    // The bytes go on unchanged, so they need not be decoded first.
    if (goes_on) Send(worker, next);
  } else {
    work += costs_.Encode(codec_->id(), count);
  }
  processors_.Run(worker, work, [this, worker, message, next, was_complete, hop_count] {
    if (!was_complete) Send(worker, next);
    if (message.hop >= hop_count) Complete(worker);
  });
}

void Ring::Complete(size_t worker) {
  Worker& state = workers_[worker];
  if (++state.complete_count < workers_.size()) return;
  ++state.step;
  state.ready = false;
  state.complete_count = 0;
  done_(worker);
}

void Ring::Sum(Step, Gradients gradients, TaskPool& pool, std::span<float> sum) {
  ForEach(pool, gradients.size(),
          [&](size_t chunk) { SumRingChunk(*codec_, chunk, gradients, sum); });
}

}  // namespace thinwire::lab
