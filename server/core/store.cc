#include "server/core/store.h"

#include <algorithm>
#include <utility>

#include "common/codec/codec.h"
#include "common/codec/dense.h"

namespace thinwire {

Store::Store(size_t value_count, uint64_t planned_examples, const Optimizer& optimizer,
             const Schedule& schedule)
    : value_count_(value_count),
      planned_examples_(planned_examples),
      optimizer_(optimizer),
      schedule_(schedule),
      slots_(optimizer.slot_count(), std::vector<float>(value_count)) {
  TakeBuffer();
  std::ranges::fill(masters_, 0.0f);
}

void Store::TakeBuffer() {
  buffer_ = pool_.Take(value_count_ * sizeof(float));
  // Memory from new[] is aligned for any type, and floats need no constructor.
  masters_ = {reinterpret_cast<float*>(buffer_->bytes.get()), value_count_};
}

ByteChain Store::Payload() {
  lent_ = true;
  return LendFp32(masters_, buffer_);
}

void Store::Seed(const ByteChain& payload) {
  if (seeded_) return;
  DecodePayload(payload, masters_);
  seeded_ = true;
}

void Store::Apply(Accumulator& accumulator) {
  ++version_;
  const Update update = {
      .learning_rate = static_cast<float>(schedule_.Rate(examples_, planned_examples_)),
      .gradient_scale = static_cast<float>(1.0 / static_cast<double>(accumulator.weight())),
      .number = version_.value,
  };
  const auto old_buffer = buffer_;
  const std::span<const float> old = masters_;
  const bool moves = std::exchange(lent_, false);
  if (moves) TakeBuffer();
  std::vector<std::span<float>> slots(slots_.size());
  accumulator.ForEachBlock([&](size_t first, std::span<const float> sum) {
    // In runs that stay in the first cache, so that what moves takes no pass of its own.
    for (; !sum.empty(); sum = sum.subspan(std::min(sum.size(), kDecodedBlock))) {
      const size_t count = std::min(sum.size(), kDecodedBlock);
      const auto run = [&](std::span<float> all) { return all.subspan(first, count); };
      if (moves) std::ranges::copy(old.subspan(first, count), run(masters_).begin());
      std::ranges::transform(slots_, slots.begin(), run);
      optimizer_.Apply(update, sum.first(count), run(masters_), slots);
      first += count;
    }
  });
  examples_ += accumulator.examples();
  accumulator.Clear();
}

}  // namespace thinwire
