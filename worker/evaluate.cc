#include "worker/evaluate.h"

#include <algorithm>

#include "worker/batch_buffer.h"

namespace thinwire {

absl::StatusOr<BatchResult> Evaluate(Model& model, const Dataset& dataset) {
  // Large enough to keep the arithmetic busy, small enough that its activations stay in the cache.
  constexpr uint32_t kBatch = 250;
  BatchBuffer buffer(dataset);
  BatchResult sum;
  const auto count = static_cast<uint32_t>(dataset.example_count());
  for (uint32_t begin = 0; begin < count; begin += kBatch) {
    const auto result = model.Evaluate(buffer.GatherRun(begin, std::min(kBatch, count - begin)));
    if (!result.ok()) return result.status();
    sum += *result;
  }
  return sum;
}

}  // namespace thinwire
