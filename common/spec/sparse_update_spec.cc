#include "common/spec/sparse_update_spec.h"

#include "common/model/partition.h"

namespace thinwire {

std::ostream& operator<<(std::ostream& out, UnselectedOwner owner) {
  return out << kUnselectedOwnerNames[static_cast<size_t>(owner)];
}

Problems SparseUpdateSpec::Validate() const {
  Problems problems;
  if (!selection_density.has_value()) {
    if (unselected_owner == UnselectedOwner::kWorkers) {
      problems.Add("selection_rest", "only valid with gradient_selection: gtopk (got none)");
    }
    return problems;
  }
  problems.RequireDensity("selection_density", *selection_density);
  problems.RequireInteger("topk_least", selection_least, 1, kLargestShardSize);
  problems.Append(ValidateDensityWarmup(selection_warmup));
  return problems;
}

std::ostream& operator<<(std::ostream& out, const SparseUpdateSpec& spec) {
  out << (spec.lazy_slots ? "lazy_slots" : "dense slots");
  if (!spec.selection_density.has_value()) return out;
  return out << ", gtopk of density " << *spec.selection_density << ", at least "
             << spec.selection_least << " values, unselected values stay with "
             << spec.unselected_owner;
}

Problems ValidateDensityWarmup(const DensityWarmup& warmup) {
  Problems problems;
  problems.RequireFraction("density_warmup", warmup.part);
  problems.RequireDensity("warmup_density", warmup.first);
  return problems;
}

}  // namespace thinwire
