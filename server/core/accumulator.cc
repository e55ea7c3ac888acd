#include "server/core/accumulator.h"

#include <algorithm>

#include "common/codec/codec.h"

namespace thinwire {

void Accumulator::Fold(const Gradient& gradient) {
  Count(gradient);
  Add(gradient);
}

void Accumulator::Keep(const Gradient& gradient) {
  Count(gradient);
  held_.emplace(gradient.worker, gradient);
}

void Accumulator::FoldTurns(absl::FunctionRef<bool(WorkerId)> awaited) {
  WorkerId turn;
  while (!held_.empty()) {
    const auto first = held_.begin();
    for (; turn < first->first; ++turn) {
      if (awaited(turn)) return;
    }
    Add(first->second);
    held_.erase(first);
    ++turn;
  }
}

std::vector<WorkerId> Accumulator::Givers() const {
  std::vector<WorkerId> givers = givers_;
  std::sort(givers.begin(), givers.end());
  return givers;
}

void Accumulator::Clear() {
  folded_ = 0;
  examples_ = 0;
  weight_ = 0;
  givers_.clear();
}

void Accumulator::Count(const Gradient& gradient) {
  examples_ += gradient.examples;
  weight_ += uint64_t{gradient.examples} + gradient.late_examples;
  givers_.push_back(gradient.worker);
}

void Accumulator::Add(const Gradient& gradient) {
  const float scale = static_cast<float>(gradient.examples);
  if (folded_++ == 0) {
    DecodePayloadScaled(gradient.payload, scale, sum_);
  } else {
    DecodePayloadAdd(gradient.payload, scale, sum_);
  }
}

}  // namespace thinwire
