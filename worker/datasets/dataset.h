// Dataset holds labeled examples in memory. Images stay bytes, as in their files, and become floats
// batch by batch: a worker needs 55 MB for Fashion-MNIST instead of 220 MB.
//
//   a byte b of channel c becomes scale[c] * b + shift[c] = (b / 255 - mean[c]) / deviation[c]
//
// The means and deviations are published constants of each training set.
#ifndef THINWIRE_WORKER_DATASETS_DATASET_H_
#define THINWIRE_WORKER_DATASETS_DATASET_H_

#include <cstdint>
#include <span>
#include <vector>

namespace thinwire {

enum class Part { kTrain, kTest };

// The conversion of a channel's bytes to floats.
struct Scaling {
  float scale = 1;
  float shift = 0;

  // Returns the scaling for a mean and a standard deviation of values between 0 and 1.
  static Scaling Normalizing(double mean, double deviation);

  bool operator==(const Scaling&) const = default;
};

struct Dataset {
  std::vector<int64_t> example_shape;  // without the batch; images: [channels, height, width]
  uint32_t class_count = 0;
  std::vector<int32_t> labels;  // 0 to class_count - 1, one per example

  // The values, row-major. Exactly one of the two is used.
  std::vector<uint8_t> bytes;
  std::vector<float> floats;
  std::vector<Scaling> scalings;  // of `bytes`, one per channel

  uint64_t example_count() const { return labels.size(); }
  // The number of values of one example.
  uint64_t value_count() const;

  // Copies an example as floats. REQUIRES: example < example_count() and out.size() ==
  // value_count().
  void CopyExample(uint64_t example, std::span<float> out) const;

  // Keeps the first `examples` examples. 0, or more than there are, keeps all.
  void Truncate(uint64_t examples);

  bool operator==(const Dataset&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_DATASET_H_
