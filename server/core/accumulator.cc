#include "server/core/accumulator.h"

#include <algorithm>
#include <utility>

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
  DecodePayloadScaled(lone_->payload, ScaleOf(*lone_), sum_);
  summed_ = true;
  lone_.reset();
}

void Accumulator::ForEachBlock(BlockFunction block) const {
  if (!lone_.has_value()) return block(0, sum_);
  DecodePayloadInBlocks(lone_->payload, ScaleOf(*lone_), sum_.size(), block);
}

std::vector<WorkerId> Accumulator::Givers() const {
  std::vector<WorkerId> givers = givers_;
  std::sort(givers.begin(), givers.end());
  return givers;
}

void Accumulator::Clear() {
  summed_ = false;
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
  if (summed_) {
    DecodePayloadAdd(gradient.payload, ScaleOf(gradient), sum_);
  } else {
    lone_ = std::move(gradient);
  }
}

}  // namespace thinwire
