// BatchBuffer: gathers examples of a data set into the batch that a model takes.
#ifndef THINWIRE_WORKER_BATCH_BUFFER_H_
#define THINWIRE_WORKER_BATCH_BUFFER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "worker/datasets/dataset.h"
#include "worker/model.h"

namespace thinwire {

// Not thread-safe.
class BatchBuffer {
 public:
  // DATASET outlives the buffer.
  explicit BatchBuffer(const Dataset& dataset) : dataset_(dataset) {}

  // The views are valid until the next call. REQUIRES: every example is below
  // dataset.example_count().
  Batch Gather(std::span<const uint32_t> examples);
  // The same for COUNT examples from BEGIN.
  Batch GatherRun(uint32_t begin, uint32_t count);

 private:
  const Dataset& dataset_;
  std::vector<uint32_t> run_;
  std::vector<float> x_;
  std::vector<int64_t> labels_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_BATCH_BUFFER_H_
