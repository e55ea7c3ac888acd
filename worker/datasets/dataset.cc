#include "worker/datasets/dataset.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>

namespace thinwire {

Scaling Scaling::Normalizing(double mean, double deviation) {
  return {.scale = static_cast<float>(1 / (255 * deviation)),
          .shift = static_cast<float>(-mean / deviation)};
}

uint64_t Dataset::value_count() const {
  uint64_t count = 1;
  for (int64_t dimension : example_shape) count *= static_cast<uint64_t>(dimension);
  return count;
}

void Dataset::CopyExample(uint64_t example, std::span<float> out) const {
  const uint64_t count = value_count();
  CHECK_LT(example, example_count());
  CHECK_EQ(out.size(), count);
  if (bytes.empty()) {
    std::copy_n(floats.begin() + static_cast<ptrdiff_t>(example * count), count, out.begin());
    return;
  }
  const uint8_t* from = bytes.data() + example * count;
  const uint64_t plane = count / scalings.size();
  float* to = out.data();
  for (const Scaling& scaling : scalings) {
    for (uint64_t i = 0; i < plane; ++i) to[i] = scaling.scale * from[i] + scaling.shift;
    from += plane;
    to += plane;
  }
}

void Dataset::Truncate(uint64_t examples) {
  if (examples == 0 || examples >= example_count()) return;
  labels.resize(examples);
  labels.shrink_to_fit();
  const uint64_t values = examples * value_count();
  if (bytes.empty()) {
    floats.resize(values);
    floats.shrink_to_fit();
  } else {
    bytes.resize(values);
    bytes.shrink_to_fit();
  }
}

}  // namespace thinwire
