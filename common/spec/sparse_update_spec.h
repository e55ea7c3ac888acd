// SparseUpdateSpec selects the values of a shard that one update of the optimizer changes.
//
//   lazy_slots          an update changes parameters and slots only where the gradient has an entry
//   selection_density   gTop-k: only the largest values of the folded gradient reach the optimizer
//
// docs/optimizers.md describes both. Immutable.
#ifndef THINWIRE_COMMON_SPEC_SPARSE_UPDATE_SPEC_H_
#define THINWIRE_COMMON_SPEC_SPARSE_UPDATE_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>

#include "common/codec/sparse/density_warmup.h"
#include "common/text/problems.h"

namespace thinwire {

// The processes that keep the gradient values that gTop-k did not select.
enum class UnselectedOwner : uint8_t { kServer, kWorkers };

// The names of the owners, in the order of the enum UnselectedOwner.
inline constexpr std::string_view kUnselectedOwnerNames[] = {"server", "workers"};

std::ostream& operator<<(std::ostream& out, UnselectedOwner owner);

struct SparseUpdateSpec {
  bool lazy_slots = false;
  // The part of a shard's values that gTop-k selects; nullopt: no selection.
  std::optional<double> selection_density;
  size_t selection_least = 1;      // the smallest number of selected values at any density
  DensityWarmup selection_warmup;  // the density warm-up, shared with pushes
  UnselectedOwner unselected_owner = UnselectedOwner::kServer;

  // Returns true if the accumulator should store the sum of sparse gradients as a sparse array.
  bool WantsSparse() const { return lazy_slots || selection_density.has_value(); }

  Problems Validate() const;

  bool operator==(const SparseUpdateSpec&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const SparseUpdateSpec& spec);
};

// Checks the settings of a density warm-up. The problems use the field names of the job file.
Problems ValidateDensityWarmup(const DensityWarmup& warmup);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_SPARSE_UPDATE_SPEC_H_
