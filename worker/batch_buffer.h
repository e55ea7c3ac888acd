// BatchBuffer copies examples of a data set into the batch that a model takes. Evaluate() runs a
// model over a whole data set, batch by batch.
#ifndef THINWIRE_WORKER_BATCH_BUFFER_H_
#define THINWIRE_WORKER_BATCH_BUFFER_H_

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
  // `dataset` must outlive the buffer.
  explicit BatchBuffer(const Dataset& dataset) : dataset_(dataset) {}

  // Returns a batch of the numbered examples, in the given order. It is valid until the next call.
  // REQUIRES: every number is below dataset.example_count().
  Batch Gather(std::span<const uint32_t> examples);
  // As Gather(), for the `count` examples that begin with `begin`.
  Batch GatherRun(uint32_t begin, uint32_t count);

 private:
  const Dataset& dataset_;
  std::vector<uint32_t> run_;
  std::vector<float> x_;
  std::vector<int64_t> labels_;
};

// Evaluates the model on every example of the data set once. Errors: those of Model::Evaluate().
absl::StatusOr<BatchResult> Evaluate(Model& model, const Dataset& dataset);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_BATCH_BUFFER_H_
