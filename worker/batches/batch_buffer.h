// BatchBuffer copies examples of a dataset into a batch, the input of a model. Evaluate() evaluates
// a model on a whole dataset, batch by batch.
#ifndef THINWIRE_WORKER_BATCHES_BATCH_BUFFER_H_
#define THINWIRE_WORKER_BATCHES_BATCH_BUFFER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/datasets/dataset.h"
#include "worker/models/model.h"

namespace thinwire {

// Not thread-safe.
class BatchBuffer {
 public:
  // `dataset` must outlive the BatchBuffer.
  explicit BatchBuffer(const Dataset& dataset) : dataset_(dataset) {}

  // Returns a batch of the dataset's examples whose numbers are listed in `examples`, in the order
  // of the list. The batch is valid until the next call of Gather() or GatherRun(). REQUIRES: every
  // number is below dataset.example_count().
  Batch Gather(std::span<const uint32_t> examples);
  // Returns a batch of the examples with the numbers `begin` to `begin` + `count` - 1. The batch is
  // valid until the next call of Gather() or GatherRun().
  Batch GatherRun(uint32_t begin, uint32_t count);

 private:
  const Dataset& dataset_;
  std::vector<uint32_t> run_;
  Values x_;
  std::vector<int64_t> labels_;
  Values targets_;
};

// Returns the form of the dataset's examples.
ExampleForm FormOf(const Dataset& dataset);

// Evaluates the model on every example of the dataset once. Errors: those of Model::Evaluate().
absl::StatusOr<BatchResult> Evaluate(Model& model, const Dataset& dataset);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_BATCHES_BATCH_BUFFER_H_
