#include "server/core/store.h"

#include <algorithm>

#include "common/codec/codec.h"

namespace thinwire {

Store::Store(size_t value_count, uint64_t planned_examples, const Optimizer& optimizer,
             const Schedule& schedule)
    : planned_examples_(planned_examples),
      optimizer_(optimizer),
      schedule_(schedule),
      masters_(value_count),
      slots_(optimizer.slot_count(), std::vector<float>(value_count)) {}

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
  std::vector<std::span<float>> slots(slots_.size());
  accumulator.ForEachBlock([&](size_t first, std::span<const float> sum) {
    const auto run = [&](std::vector<float>& all) {
      return std::span(all).subspan(first, sum.size());
    };
    std::ranges::transform(slots_, slots.begin(), run);
    optimizer_.Apply(update, sum, run(masters_), slots);
  });
  examples_ += accumulator.examples();
  accumulator.Clear();
}

}  // namespace thinwire
