#include "worker/datasets/dataset.h"

#include <glog/logging.h>

#include <variant>

namespace thinwire {
namespace {

// Returns the number of values of a tensor.
uint64_t CountOf(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (int64_t dimension : shape) count *= static_cast<uint64_t>(dimension);
  return count;
}

}  // namespace

Scaling Scaling::Normalizing(double mean, double deviation) {
  return {.scale = static_cast<float>(1 / (255 * deviation)),
          .shift = static_cast<float>(-mean / deviation)};
}

uint64_t Dataset::value_count() const { return CountOf(example_shape); }

uint64_t Dataset::example_count() const {
  return class_count > 0 ? labels.size() : SizeOf(ViewOf(targets)) / CountOf(target_shape);
}

void Dataset::GatherExamples(std::span<const uint32_t> examples, Values& out) const {
  const uint64_t count = value_count();
  if (bytes.empty()) {
    GatherRows(values, count, examples, out);
    return;
  }
  if (!std::holds_alternative<std::vector<float>>(out)) out.emplace<std::vector<float>>();
  auto& floats = std::get<std::vector<float>>(out);
  floats.resize(examples.size() * count);
  const uint64_t plane = count / scalings.size();
  float* to = floats.data();
  for (const uint32_t example : examples) {
    CHECK_LT(example, example_count());
    const uint8_t* from = bytes.data() + example * count;
    for (const Scaling& scaling : scalings) {
      for (uint64_t i = 0; i < plane; ++i) to[i] = scaling.scale * from[i] + scaling.shift;
      from += plane;
      to += plane;
    }
  }
}

void Dataset::GatherTargets(std::span<const uint32_t> examples, Values& out) const {
  GatherRows(targets, CountOf(target_shape), examples, out);
}

void Dataset::MakeLabelsTargets() {
  targets = std::vector<int64_t>(labels.begin(), labels.end());
  target_shape.clear();
  labels.clear();
  class_count = 0;
}

void Dataset::Truncate(uint64_t examples) {
  if (examples == 0 || examples >= example_count()) return;
  const auto cut = [](auto& vector, uint64_t size) {
    if (vector.empty()) return;
    vector.resize(size);
    vector.shrink_to_fit();
  };
  const auto cut_values = [&cut](Values& all, uint64_t size) {
    std::visit([&](auto& vector) { cut(vector, size); }, all);
  };
  cut(labels, examples);
  cut(bytes, examples * value_count());
  cut_values(values, examples * value_count());
  cut_values(targets, examples * CountOf(target_shape));
}

}  // namespace thinwire
