#include "server/core/update/updater.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"
#include "common/codec/sparse/index_list.h"
#include "common/codec/sparse/sparse_payload.h"
#include "common/memory/array_bytes.h"
#include "kernels/update/update_average.h"
#include "server/core/optimizer/sparse_update.h"

namespace thinwire {
namespace {

// Returns 1 - d_t of update NUMBER (updater.h).
float AveragePart(double decay, uint64_t number) {
  const auto t = static_cast<double>(number);
  return static_cast<float>(1 - std::min(decay, (1 + t) / (10 + t)));
}

}  // namespace

Updater::Updater(size_t value_count, const Optimizer& optimizer,
                 const SparseUpdateSpec& sparse_updates, std::pmr::memory_resource* memory,
                 std::vector<size_t> tensor_sizes)
    : optimizer_(optimizer),
      spec_(sparse_updates),
      average_(optimizer.average_decay() != 0 ? value_count : 0, memory),
      last_(sparse_updates.lazy_slots ? value_count : 0),
      gradient_(optimizer.reads_norms() ? value_count : 0, memory) {
  if (optimizer.reads_norms()) {
    tensor_sizes_ = std::move(tensor_sizes);
    if (tensor_sizes_.empty()) tensor_sizes_.push_back(value_count);
  }
  // Each slot array is constructed in place, because a copy of a FloatArray would not be allocated
  // in MEMORY.
  for (int i = 0; i < optimizer.slot_count(); ++i) slots_.emplace_back(value_count, memory);
  if (!sparse_updates.selection_density.has_value()) return;
  selection_.emplace(value_count, sparse_updates.unselected_owner, memory);
  if (sparse_updates.unselected_owner == UnselectedOwner::kWorkers) {
    selected_list_ = EncodeIndexList({}, value_count);
  }
}

void Updater::Start(std::span<const float> masters) {
  if (!average_.empty()) std::copy(masters.begin(), masters.end(), average_.begin());
}

bool Updater::Apply(const Update& update, const Accumulator& accumulator,
                    std::span<const float> before, std::span<float> masters) {
  if (!update.measured.has_value()) Select(update, accumulator);
  if (!selected_list_.empty()) selected_list_ = EncodeIndexList(selected(), masters.size());
  const Update chosen = OfGradient(update);
  if (!tensor_sizes_.empty()) return ApplyToTensors(chosen, accumulator, before, masters);
  if (last_.empty()) return ApplyEverywhere(chosen, accumulator, before, masters);
  if (before.data() != masters.data()) std::copy(before.begin(), before.end(), masters.begin());
  if (selection_.has_value()) {
    return ApplyAtEntries(chosen, selection_->indices(), selection_->values(), masters);
  }
  CollectEntries(accumulator);
  return ApplyAtEntries(chosen, indices_, sums_, masters);
}

SquareSums Updater::Measure(const Update& update, const Accumulator& accumulator,
                            std::span<const float> masters) {
  Select(update, accumulator);
  DecodeGradient(accumulator);
  const std::vector<std::span<float>> slots(slots_.begin(), slots_.end());
  return optimizer_.Measure(OfGradient(update), gradient_, masters, slots);
}

void Updater::Select(const Update& update, const Accumulator& accumulator) {
  if (!selection_.has_value()) return;
  selection_->Select(accumulator, update.gradient_scale, SelectedCount(update.progress));
}

Update Updater::OfGradient(const Update& update) const {
  Update chosen = update;
  if (selection_.has_value()) chosen.gradient_scale = 1;
  return chosen;
}

void Updater::DecodeGradient(const Accumulator& accumulator) {
  ForEachBlock(accumulator, [&](size_t first, std::span<const float> values) {
    std::copy(values.begin(), values.end(), gradient_.begin() + static_cast<std::ptrdiff_t>(first));
  });
}

void Updater::MoveAverage(const Update& update, size_t first, std::span<const float> masters) {
  if (average_.empty()) return;
  kernels::UpdateAverage(AveragePart(optimizer_.average_decay(), update.number), masters,
                         std::span(average_).subspan(first, masters.size()));
}

size_t Updater::SelectedCount(double progress) const {
  const double density = spec_.selection_warmup.At(progress, *spec_.selection_density);
  return SparseEntryCount(density, selection_->remainder().size(), spec_.selection_least);
}

bool Updater::ApplyEverywhere(const Update& update, const Accumulator& accumulator,
                              std::span<const float> before, std::span<float> masters) {
  std::vector<std::span<float>> slots(slots_.size());
  bool saturated = false;
  ForEachBlock(accumulator, [&](size_t first, std::span<const float> sum) {
    // Each iteration updates a block of values that fits in the L1 cache. The block's old masters
    // are copied from BEFORE in the same iteration, so the copy costs no extra pass over memory.
    for (; !sum.empty(); sum = sum.subspan(std::min(sum.size(), kDecodedBlock))) {
      const size_t count = std::min(sum.size(), kDecodedBlock);
      const auto run = [&](std::span<float> all) { return all.subspan(first, count); };
      if (before.data() != masters.data()) {
        const std::span<const float> old = before.subspan(first, count);
        std::copy(old.begin(), old.end(), run(masters).begin());
      }
      std::ranges::transform(slots_, slots.begin(), run);
      saturated |= optimizer_.Apply(update, sum.first(count), run(masters), slots);
      MoveAverage(update, first, run(masters));
      first += count;
    }
  });
  return saturated;
}

bool Updater::ApplyToTensors(const Update& update, const Accumulator& accumulator,
                             std::span<const float> before, std::span<float> masters) {
  if (before.data() != masters.data()) std::copy(before.begin(), before.end(), masters.begin());
  if (!update.measured.has_value()) DecodeGradient(accumulator);
  std::vector<std::span<float>> slots(slots_.size());
  bool saturated = false;
  size_t first = 0;
  for (const size_t count : tensor_sizes_) {
    const auto tensor = [&](std::span<float> all) { return all.subspan(first, count); };
    std::ranges::transform(slots_, slots.begin(), tensor);
    saturated |= optimizer_.Apply(update, tensor(gradient_), tensor(masters), slots);
    MoveAverage(update, first, tensor(masters));
    first += count;
  }
  return saturated;
}

void Updater::ForEachBlock(const Accumulator& accumulator, BlockFunction block) const {
  if (selection_.has_value()) {
    selection_->ForEachBlock(block);
  } else {
    accumulator.ForEachBlock(block);
  }
}

bool Updater::ApplyAtEntries(const Update& update, std::span<const uint32_t> indices,
                             std::span<const float> sums, std::span<float> masters) {
  const std::vector<std::span<float>> slots(slots_.begin(), slots_.end());
  const bool saturated = ApplySparse(optimizer_, update, indices, sums, {masters, slots, last_});
  // The averages of masters without an entry move, too.
  MoveAverage(update, 0, masters);
  return saturated;
}

void Updater::CollectEntries(const Accumulator& accumulator) {
  indices_.clear();
  sums_.clear();
  if (accumulator.sparse()) {
    return accumulator.ForEachEntry(
        [&](std::span<const uint32_t> indices, std::span<const float> sums) {
          indices_.insert(indices_.end(), indices.begin(), indices.end());
          sums_.insert(sums_.end(), sums.begin(), sums.end());
        });
  }
  accumulator.ForEachBlock([&](size_t, std::span<const float> sum) {
    sums_.insert(sums_.end(), sum.begin(), sum.end());
  });
  indices_.resize(sums_.size());
  std::iota(indices_.begin(), indices_.end(), 0u);
}

UpdaterSnapshot Updater::Save() const {
  UpdaterSnapshot snapshot;
  for (const FloatArray& slot : slots_) {
    snapshot.slots.push_back(CopyArray(std::as_bytes(std::span(slot))));
  }
  snapshot.average = CopyArray(std::as_bytes(std::span(average_)));
  snapshot.last = CopyArray(std::as_bytes(std::span(last_)));
  if (selection_.has_value()) snapshot.remainder = selection_->Save();
  snapshot.selected_list = selected_list_;
  return snapshot;
}

absl::Status Updater::Restore(const UpdaterSnapshot& snapshot) {
  if (snapshot.slots.size() != slots_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("slots: wrong number (expected ", slots_.size(),
                                                   ", got ", snapshot.slots.size(), ")"));
  }
  for (size_t i = 0; i < slots_.size(); ++i) {
    RETURN_IF_ERROR(FillArray(absl::StrCat("slot_", i), snapshot.slots[i],
                              std::as_writable_bytes(std::span(slots_[i]))));
  }
  RETURN_IF_ERROR(
      FillArray("average", snapshot.average, std::as_writable_bytes(std::span(average_))));
  RETURN_IF_ERROR(FillArray("last", snapshot.last, std::as_writable_bytes(std::span(last_))));
  if (selection_.has_value()) {
    RETURN_IF_ERROR(selection_->Restore(snapshot.remainder));
  } else {
    RETURN_IF_ERROR(FillArray("remainder", snapshot.remainder, {}));
  }
  if (selected_list_.empty()) return FillArray("selected_list", snapshot.selected_list, {});
  RETURN_IF_ERROR(DecodeIndexList(snapshot.selected_list, selection_->remainder().size()).status());
  selected_list_ = snapshot.selected_list;
  return absl::OkStatus();
}

}  // namespace thinwire
