#include "server/core/accumulator.h"

#include <algorithm>
#include <utility>

#include "kernels/sparse.h"

namespace thinwire {
namespace {

float ScaleOf(const Gradient& gradient) { return static_cast<float>(gradient.examples); }

}  // namespace

void Accumulator::Fold(Gradient gradient) {
  Count(gradient);
  Add(std::move(gradient));
}

void Accumulator::Keep(Gradient gradient) {
  Count(gradient);
  const WorkerId worker = gradient.worker;
  held_.emplace(worker, std::move(gradient));
}

void Accumulator::FoldTurns(absl::FunctionRef<bool(WorkerId)> awaited) {
  WorkerId turn;
  while (!held_.empty()) {
    const auto first = held_.begin();
    for (; turn < first->first; ++turn) {
      if (awaited(turn)) return;
    }
    Add(std::move(first->second));
    held_.erase(first);
    ++turn;
  }
}

void Accumulator::FoldLone() {
  if (!lone_.has_value()) return;
  AddToSum(*lone_);
  lone_.reset();
}

bool Accumulator::sparse() const {
  return lone_.has_value() ? IsKeptSparse(*lone_) : form_ == Form::kSparse;
}

void Accumulator::ForEachBlock(BlockFunction block) const {
  if (!lone_.has_value()) return block(0, sum_);
  DecodePayloadInBlocks(lone_->payload, ScaleOf(*lone_), block);
}

void Accumulator::ForEachEntry(EntryFunction block) const {
  std::vector<float> sums;
  if (!lone_.has_value()) {
    return entries_.ForEachBlock([&](std::span<const uint32_t> indices) {
      sums.resize(indices.size());
      kernels::Gather(sum_, indices, sums);
      block(indices, sums);
    });
  }
  ForEachPayloadEntry(
      lone_->payload, [&](std::span<const uint32_t> indices, std::span<const float> values) {
        sums.resize(values.size());
        std::ranges::transform(values, sums.begin(), [&](float v) { return ScaleOf(*lone_) * v; });
        block(indices, sums);
      });
}

std::vector<WorkerId> Accumulator::Givers() const {
  std::vector<WorkerId> givers = givers_;
  std::sort(givers.begin(), givers.end());
  return givers;
}

void Accumulator::Clear() {
  if (form_ == Form::kSparse) entries_.Clear();
  form_ = Form::kNothing;
  lone_.reset();
  examples_ = 0;
  weight_ = 0;
  givers_.clear();
}

void Accumulator::Count(const Gradient& gradient) {
  examples_ += gradient.examples;
  weight_ += uint64_t{gradient.examples} + gradient.late_examples;
  givers_.push_back(gradient.worker);
}

void Accumulator::Add(Gradient gradient) {
  FoldLone();
  if (form_ == Form::kNothing) {
    lone_ = std::move(gradient);
  } else {
    AddToSum(gradient);
  }
}

void Accumulator::AddToSum(const Gradient& gradient) {
  if (form_ != Form::kWhole && IsKeptSparse(gradient)) {
    AddEntries(gradient);
    form_ = Form::kSparse;
    return;
  }
  if (form_ == Form::kSparse) MakeWhole();
  if (form_ == Form::kNothing) {
    DecodePayloadScaled(gradient.payload, ScaleOf(gradient), sum_);
  } else {
    DecodePayloadAdd(gradient.payload, ScaleOf(gradient), sum_);
  }
  form_ = Form::kWhole;
}

void Accumulator::AddEntries(const Gradient& gradient) {
  const float scale = ScaleOf(gradient);
  ForEachPayloadEntry(gradient.payload,
                      [&](std::span<const uint32_t> indices, std::span<const float> values) {
                        for (size_t j = 0; j < indices.size(); ++j) {
                          float& sum = sum_[indices[j]];
                          const float added = scale * values[j];
                          sum = entries_.Insert(indices[j]) ? added : sum + added;
                        }
                      });
}

void Accumulator::MakeWhole() {
  for (size_t i = 0; i < sum_.size(); ++i) {
    if (!entries_.Has(static_cast<uint32_t>(i))) sum_[i] = 0;
  }
  entries_.Clear();
}

bool Accumulator::IsKeptSparse(const Gradient& gradient) const {
  return keep_sparse_ && PayloadIsSparse(gradient.payload);
}

}  // namespace thinwire
