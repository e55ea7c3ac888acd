#include "server/core/update/store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/repeatable_math.h"
#include "common/base/status_macros.h"
#include "common/memory/array_bytes.h"

namespace thinwire {

Store::Store(size_t value_count, uint64_t planned_examples, const Optimizer& optimizer,
             const Schedule& schedule, const SparseUpdateSpec& sparse_updates,
             std::pmr::memory_resource* memory, std::vector<size_t> tensor_sizes)
    : value_count_(value_count),
      planned_examples_(planned_examples),
      schedule_(schedule),
      pool_(memory),
      updater_(value_count, optimizer, sparse_updates, memory, std::move(tensor_sizes)) {
  TakeBuffer();
  std::ranges::fill(masters_, 0.0f);
}

void Store::TakeBuffer() {
  buffer_ = pool_.Take(value_count_ * sizeof(float));
  // The cast of bytes to floats is valid: the pool aligns buffers for every type, and floats need
  // no constructor.
  masters_ = {reinterpret_cast<float*>(buffer_->bytes.get()), value_count_};
}

ByteChain Store::Payload() {
  lent_ = true;
  return LendFp32(masters_, buffer_);
}

void Store::Seed(const CheckedPayload& payload) {
  if (seeded_) return;
  DecodePayload(payload, masters_);
  updater_.Start(masters_);
  seeded_ = true;
}

Update Store::Next(const Accumulator& accumulator, double factor) const {
  const double rate = schedule_.Rate(examples_, planned_examples_) * accumulator.rate_factor();
  return {
      .learning_rate = FiniteFloat(rate),
      .gradient_scale = static_cast<float>(factor / static_cast<double>(accumulator.weight())),
      .number = version_.value + 1,
      .progress = planned_examples_ == 0 ? 1 : PlanProgress(examples_, planned_examples_),
      .measured = std::nullopt,
  };
}

void Store::Apply(Accumulator& accumulator, double factor) {
  Apply(Next(accumulator, factor), accumulator);
}

SquareSums Store::Measure(const Accumulator& accumulator) {
  return updater_.Measure(Next(accumulator), accumulator, masters_);
}

void Store::ApplyMeasured(Accumulator& accumulator, const SquareSums& sums) {
  Update update = Next(accumulator);
  update.measured = sums;
  Apply(update, accumulator);
}

void Store::Apply(const Update& update, Accumulator& accumulator) {
  ++version_;
  const auto buffer_before = buffer_;
  const std::span<const float> before = masters_;
  if (std::exchange(lent_, false)) TakeBuffer();
  saturated_ = updater_.Apply(update, accumulator, before, masters_);
  saturated_updates_ += saturated_ ? 1 : 0;
  examples_ += accumulator.examples();
  accumulator.Clear();
}

void Store::Clear() {
  ++version_;
  if (std::exchange(lent_, false)) TakeBuffer();
  std::ranges::fill(masters_, 0.0f);
  saturated_ = false;
}

void Store::Replace(const CheckedPayload& payload) {
  ++version_;
  if (std::exchange(lent_, false)) TakeBuffer();
  DecodePayload(payload, masters_);
  saturated_ = false;
}

StoreSnapshot Store::Save() {
  lent_ = true;
  return {.version = version_,
          .saturated = saturated_,
          .saturated_updates = saturated_updates_,
          .examples = examples_,
          .planned_examples = planned_examples_,
          .masters = ByteChain(std::as_bytes(masters_), buffer_),
          .updater = updater_.Save()};
}

absl::Status Store::Restore(const StoreSnapshot& snapshot) {
  const uint64_t least = snapshot.saturated ? 1 : 0;
  if (snapshot.saturated_updates < least || snapshot.saturated_updates > snapshot.version.value) {
    return absl::InvalidArgumentError(absl::StrCat("saturated_updates: out of range (expected ",
                                                   least, " to ", snapshot.version.value, ", got ",
                                                   snapshot.saturated_updates, ")"));
  }
  RETURN_IF_ERROR(FillArray("masters", snapshot.masters, std::as_writable_bytes(masters_)));
  RETURN_IF_ERROR(updater_.Restore(snapshot.updater));
  seeded_ = true;
  version_ = snapshot.version;
  saturated_ = snapshot.saturated;
  saturated_updates_ = snapshot.saturated_updates;
  examples_ = snapshot.examples;
  planned_examples_ = snapshot.planned_examples.value_or(planned_examples_);
  return absl::OkStatus();
}

}  // namespace thinwire
