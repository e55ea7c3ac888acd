// Aggregation combines the gradients of P workers into one average gradient to apply, and keeps
// unselected values for later steps. gTop-k methods select k values per worker and apply k values
// in total.
//
//   dense    Applies the average of all gradients.
//   tree     Merges the selected values in a tree of peers (peer_tree.h). A worker returns to its
//            residual the selected values whose index is missing at the root.
//   exact    Adds all selected values and applies the k largest sums. A worker returns to its
//            residual the selected values whose index is not applied.
//   server   Adds all selected values to the values kept at the server and applies the k largest
//            sums. The server keeps the other sums (server/core/update/global_top_k.h).
//
// Mass is conserved if the sum of all gradients equals the sum of all applied values plus the
// pending values, each averaged over the workers. Not thread-safe.
#ifndef THINWIRE_EXPERIMENTS_AGGREGATION_H_
#define THINWIRE_EXPERIMENTS_AGGREGATION_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace thinwire {

class Aggregation {
 public:
  virtual ~Aggregation() = default;

  // Returns the average gradient to apply. REQUIRES: GRADIENTS has one element per worker.
  virtual std::vector<float> Step(std::span<const std::vector<float>> gradients) = 0;
  // Returns the sum of the magnitudes of all values that the workers selected in the last step.
  virtual double selected() const = 0;
  // Returns the gradient that is not yet applied: the workers' residuals plus the unselected values
  // at the server, averaged over the workers.
  virtual std::vector<double> Pending() const = 0;
};

// K is the number of values that each worker selects, and the number of values that each step
// applies.
std::unique_ptr<Aggregation> MakeDenseAggregation(size_t value_count);
// REQUIRES: WORKER_COUNT is a power of two.
std::unique_ptr<Aggregation> MakeTreeAggregation(size_t value_count, size_t worker_count, size_t k);
std::unique_ptr<Aggregation> MakeExactAggregation(size_t value_count, size_t worker_count,
                                                  size_t k);
std::unique_ptr<Aggregation> MakeServerAggregation(size_t value_count, size_t worker_count,
                                                   size_t k);

}  // namespace thinwire

#endif  // THINWIRE_EXPERIMENTS_AGGREGATION_H_
