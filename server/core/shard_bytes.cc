#include "server/core/shard_bytes.h"

namespace thinwire {
namespace {

// An upper bound of the size of a shard's objects without arrays, including those of server/shards.
constexpr uint64_t kFixedBytes = 4096;

}  // namespace

uint64_t ShardBytes(const ShardOptions& options, const Optimizer& optimizer) {
  const SparseUpdateSpec& sparse = options.sparse_updates;
  // Counts the arrays with four bytes per value. The masters count twice: a second buffer holds
  // what readers were sent, either older masters in fp32 or two versions in 16 bits.
  uint64_t arrays = 2;
  arrays += 1;  // the sum
  auto slots = static_cast<uint64_t>(optimizer.slot_count());
  if (optimizer.average_decay() != 0) slots += 1;  // the moving average
  arrays += slots;
  if (optimizer.reads_norms()) arrays += 1;  // the decoded gradient
  const bool mean_squares =
      options.staleness.policy == StalenessPolicy::kDcasgd && options.staleness.decay != 0;
  if (mean_squares) arrays += 1;
  // LazyArrays::last, and the vectors of an update's indices and sums, which may grow to twice
  // their size.
  if (sparse.lazy_slots) arrays += 5;
  if (sparse.selection_density.has_value()) arrays += 3;  // the remainder, indices and values
  if (sparse.unselected_owner == UnselectedOwner::kWorkers) arrays += 1;  // the index list
  if (options.publish.has_value()) arrays += 3;  // published values, log, full copy
  if (options.checkpointed) {
    arrays += 1 + slots;                                    // masters, slots
    if (sparse.lazy_slots) arrays += 1;                     // LazyArrays::last
    if (sparse.selection_density.has_value()) arrays += 1;  // the remainder
    if (options.publish.has_value()) arrays += 1;           // published values
    if (mean_squares) arrays += 1;
  }
  uint64_t bytes = arrays * options.value_count * sizeof(float);
  bytes += bytes / 16;                                         // large arrays take whole pages
  if (sparse.WantsSparse()) bytes += options.value_count / 8;  // the indices of a sparse sum
  return bytes + kFixedBytes + options.rule.max_workers * sizeof(WorkerRecord);
}

}  // namespace thinwire
