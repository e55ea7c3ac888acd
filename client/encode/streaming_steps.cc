#include "client/encode/streaming_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace thinwire::client {
namespace {

// Returns one span of VALUES per tensor.
std::vector<std::span<float>> ByTensor(const Partition& partition, std::span<float> values) {
  std::vector<std::span<float>> tensors;
  for (const TensorShape& tensor : partition.tensors()) {
    tensors.push_back(values.first(tensor.value_count()));
    values = values.subspan(tensor.value_count());
  }
  return tensors;
}

}  // namespace

StreamingSteps::StreamingSteps(const Partition& partition)
    : partition_(partition), differences_(partition.value_count()) {
  state_.x.resize(partition.value_count());
  state_.base.resize(partition.value_count());
  Split();
}

void StreamingSteps::Split() {
  x_ = ByTensor(partition_, state_.x);
  base_ = ByTensor(partition_, state_.base);
  difference_ = ByTensor(partition_, differences_);
}

void StreamingSteps::Follow(Step step, Tensors replica) {
  if (state_.step == step) return;
  const bool has_values = state_.step.has_value();
  for (size_t t = 0; t < replica.size(); ++t) {
    for (size_t i = 0; i < replica[t].size(); ++i) {
      const float moved = replica[t][i] + (x_[t][i] - base_[t][i]);
      x_[t][i] = has_values && std::isfinite(moved) ? moved : replica[t][i];
    }
    std::ranges::copy(replica[t], base_[t].begin());
  }
  Finish(step);
}

void StreamingSteps::Take(std::span<const ShardId> shards) {
  for (const ShardId shard : shards) {
    for (const Segment& s : partition_.segments(shard)) {
      const std::span<const float> x = x_[s.tensor].subspan(s.offset, s.count);
      const std::span<float> base = base_[s.tensor].subspan(s.offset, s.count);
      const std::span<float> difference = difference_[s.tensor].subspan(s.offset, s.count);
      for (size_t i = 0; i < s.count; ++i) difference[i] = base[i] - x[i];
      std::ranges::copy(x, base.begin());
    }
  }
}

void StreamingSteps::Mix(std::span<const ShardId> shards, Tensors replica, float own) {
  const auto mix = [own](std::span<const float> r, std::span<float> values) {
    for (size_t i = 0; i < r.size(); ++i) {
      const float mixed = own * values[i] + (1 - own) * r[i];
      values[i] = std::isfinite(mixed) ? mixed : r[i];
    }
  };
  for (const ShardId shard : shards) {
    for (const Segment& s : partition_.segments(shard)) {
      const std::span<const float> r = replica[s.tensor].subspan(s.offset, s.count);
      mix(r, x_[s.tensor].subspan(s.offset, s.count));
      mix(r, base_[s.tensor].subspan(s.offset, s.count));
    }
  }
}

double StreamingSteps::UnpushedNorm() const {
  double norm = 0;
  for (size_t i = 0; state_.step.has_value() && i < state_.x.size(); ++i) {
    norm += std::abs(double{state_.base[i]} - state_.x[i]);
  }
  return norm;
}

void StreamingSteps::Restore(State state) {
  state_ = std::move(state);
  Split();
}

}  // namespace thinwire::client
