#include "server/core/update/accumulator.h"

#include <algorithm>
#include <utility>

#include "kernels/reductions.h"
#include "kernels/sparse.h"

namespace thinwire {
namespace {

float ScaleOf(const Gradient& gradient) {
  return static_cast<float>(gradient.examples) * gradient.factor;
}

}  // namespace

void Accumulator::Fold(Gradient gradient) {
  Count(gradient);
  Add(std::move(gradient));
}

void Accumulator::Hold(Gradient gradient) {
  Count(gradient);
  const WorkerId worker = gradient.worker;
  held_.emplace(worker, std::move(gradient));
}

void Accumulator::FoldInOrder(absl::FunctionRef<bool(WorkerId)> may_still_push) {
  WorkerId next;
  while (!held_.empty()) {
    const auto first = held_.begin();
    for (; next < first->first; ++next) {
      if (may_still_push(next)) return;
    }
    Add(std::move(first->second));
    held_.erase(first);
    ++next;
  }
}

void Accumulator::FoldSingle() {
  if (!single_.has_value()) return;
  AddToSum(*single_);
  single_.reset();
}

bool Accumulator::sparse() const {
  return single_.has_value() ? StaysSparse(*single_) : form_ == Form::kSparse;
}

void Accumulator::ForEachBlock(BlockFunction block) const {
  if (!single_.has_value()) return block(0, sum_);
  DecodePayloadInBlocks(single_->payload, ScaleOf(*single_), block);
}

void Accumulator::ForEachEntry(EntryFunction block) const {
  std::vector<float> sums;
  if (!single_.has_value()) {
    return entries_.ForEachBlock([&](std::span<const uint32_t> indices) {
      sums.resize(indices.size());
      kernels::Gather(sum_, indices, sums);
      block(indices, sums);
    });
  }
  ForEachPayloadEntry(single_->payload,
                      [&](std::span<const uint32_t> indices, std::span<const float> values) {
                        sums.resize(values.size());
                        std::ranges::transform(values, sums.begin(),
                                               [&](float v) { return ScaleOf(*single_) * v; });
                        block(indices, sums);
                      });
}

double Accumulator::SquaredNormOfMean() const {
  const auto scale = static_cast<float>(1.0 / static_cast<double>(weight_));
  double squares = 0;
  const auto add = [&](auto /*position*/, std::span<const float> values) {
    squares += kernels::SumOfSquares(values, scale);
  };
  if (sparse()) {
    ForEachEntry(add);
  } else {
    ForEachBlock(add);
  }
  return squares;
}

std::vector<WorkerId> Accumulator::Contributors() const {
  std::vector<WorkerId> sorted = contributors_;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

void Accumulator::Clear() {
  if (form_ == Form::kSparse) entries_.Clear();
  form_ = Form::kNothing;
  single_.reset();
  examples_ = 0;
  weight_ = 0;
  rate_sum_ = 0;
  contributors_.clear();
}

void Accumulator::Count(const Gradient& gradient) {
  examples_ += gradient.examples;
  weight_ += uint64_t{gradient.examples} + gradient.late_examples;
  rate_sum_ += gradient.examples * double{gradient.rate_factor};
  contributors_.push_back(gradient.worker);
}

void Accumulator::Add(Gradient gradient) {
  FoldSingle();
  if (form_ == Form::kNothing) {
    single_ = std::move(gradient);
  } else {
    AddToSum(gradient);
  }
}

void Accumulator::AddToSum(const Gradient& gradient) {
  if (form_ != Form::kDense && StaysSparse(gradient)) {
    AddEntries(gradient);
    form_ = Form::kSparse;
    return;
  }
  if (form_ == Form::kSparse) MakeDense();
  if (form_ == Form::kNothing) {
    DecodePayloadScaled(gradient.payload, ScaleOf(gradient), sum_);
  } else {
    DecodePayloadAdd(gradient.payload, ScaleOf(gradient), sum_);
  }
  form_ = Form::kDense;
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

void Accumulator::MakeDense() {
  for (size_t i = 0; i < sum_.size(); ++i) {
    if (!entries_.Has(static_cast<uint32_t>(i))) sum_[i] = 0;
  }
  entries_.Clear();
}

bool Accumulator::StaysSparse(const Gradient& gradient) const {
  return keep_sparse_ && PayloadIsSparse(gradient.payload);
}

}  // namespace thinwire
