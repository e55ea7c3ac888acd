// Exchange: how P workers agree on one average gradient to apply, and what they keep for later.
//
//   dense          the average
//   tree           each selects k, the tree of peers merges (peer_tree.h); a worker puts back what
//                  it selected and the root lacks
//   exact          each selects k, all are summed, the k largest sums count; put back likewise
//   server         each selects k, all are summed, the k largest of sum and rest count; what was
//   not
//                  taken stays at the server (server/core/global_top_k.h)
//
// Mass is conserved if what was given = what was applied + what is owed, all as averages.
// Not thread-safe.
#ifndef THINWIRE_EXPERIMENTS_EXCHANGE_H_
#define THINWIRE_EXPERIMENTS_EXCHANGE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace thinwire {

class Exchange {
 public:
  virtual ~Exchange() = default;

  // The average to apply. REQUIRES: a gradient for each worker.
  virtual std::vector<float> Step(std::span<const std::vector<float>> gradients) = 0;
  // The sum of the magnitudes that the workers selected in the last step.
  virtual double selected() const = 0;
  // What was given and not yet applied.
  virtual std::vector<double> Owed() const = 0;
};

// K is how many values a worker selects, and how many are applied. REQUIRES: the number of workers
// is a power of two for the tree.
std::unique_ptr<Exchange> MakeDenseExchange(size_t value_count);
std::unique_ptr<Exchange> MakeTreeExchange(size_t value_count, size_t worker_count, size_t k);
std::unique_ptr<Exchange> MakeExactExchange(size_t value_count, size_t worker_count, size_t k);
std::unique_ptr<Exchange> MakeServerExchange(size_t value_count, size_t worker_count, size_t k);

}  // namespace thinwire

#endif  // THINWIRE_EXPERIMENTS_EXCHANGE_H_
