#include "worker/batch_buffer.h"

#include <numeric>

namespace thinwire {

Batch BatchBuffer::Gather(std::span<const uint32_t> examples) {
  const uint64_t values = dataset_.value_count();
  x_.resize(examples.size() * values);
  labels_.resize(examples.size());
  for (size_t i = 0; i < examples.size(); ++i) {
    dataset_.CopyExample(examples[i], std::span(x_).subspan(i * values, values));
    labels_[i] = dataset_.labels[examples[i]];
  }
  return {.x = x_, .labels = labels_};
}

Batch BatchBuffer::GatherRun(uint32_t begin, uint32_t count) {
  run_.resize(count);
  std::iota(run_.begin(), run_.end(), begin);
  return Gather(run_);
}

}  // namespace thinwire
