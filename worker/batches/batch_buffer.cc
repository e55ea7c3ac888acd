#include "worker/batches/batch_buffer.h"

#include <algorithm>
#include <numeric>

#include "common/base/status_macros.h"

namespace thinwire {

Batch BatchBuffer::Gather(std::span<const uint32_t> examples) {
  dataset_.GatherExamples(examples, x_);
  if (dataset_.class_count == 0) {
    dataset_.GatherTargets(examples, targets_);
    return {.x = ViewOf(x_), .targets = ViewOf(targets_)};
  }
  labels_.resize(examples.size());
  for (size_t i = 0; i < examples.size(); ++i) labels_[i] = dataset_.labels[examples[i]];
  return {.x = ViewOf(x_), .labels = labels_};
}

Batch BatchBuffer::GatherRun(uint32_t begin, uint32_t count) {
  run_.resize(count);
  std::iota(run_.begin(), run_.end(), begin);
  return Gather(run_);
}

ExampleForm FormOf(const Dataset& dataset) {
  return {.shape = dataset.example_shape,
          .type = dataset.value_type(),
          .class_count = dataset.class_count,
          .target_shape = dataset.target_shape,
          .target_type = TypeOf(dataset.targets)};
}

absl::StatusOr<BatchResult> Evaluate(Model& model, const Dataset& dataset) {
  // The batch size of an evaluation: large enough for efficient kernels, and small enough that the
  // activations of a batch stay in the CPU cache.
  constexpr uint32_t kBatch = 250;
  BatchBuffer buffer(dataset);
  BatchResult sum;
  const auto count = static_cast<uint32_t>(dataset.example_count());
  for (uint32_t begin = 0; begin < count; begin += kBatch) {
    ASSIGN_OR_RETURN(const BatchResult result,
                     model.Evaluate(buffer.GatherRun(begin, std::min(kBatch, count - begin))));
    sum += result;
  }
  return sum;
}

}  // namespace thinwire
