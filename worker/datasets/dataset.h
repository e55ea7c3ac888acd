// Dataset: labelled examples in memory. Images stay the bytes of their files and become floats
// batch by batch, so that several workers on one machine hold 55 MB of Fashion-MNIST each and not
// 220.
//
//   a byte b of channel c becomes scale[c] * b + shift[c] = (b / 255 - mean[c]) / deviation[c]
//
// where mean and deviation are those of the training set, published constants of each data set.
#ifndef THINWIRE_WORKER_DATASETS_DATASET_H_
#define THINWIRE_WORKER_DATASETS_DATASET_H_

#include <cstdint>
#include <span>
#include <vector>

namespace thinwire {

enum class Part { kTrain, kTest };

// How a channel's bytes become floats.
struct Scaling {
  float scale = 1;
  float shift = 0;

  // MEAN and DEVIATION are of values between 0 and 1.
  static Scaling Normalising(double mean, double deviation);

  bool operator==(const Scaling&) const = default;
};

struct Dataset {
  std::vector<int64_t> example_shape;  // of bytes: channels first
  uint32_t class_count = 0;
  std::vector<int32_t> labels;  // 0 to class_count - 1, one per example

  // Row-major, one of the two.
  std::vector<uint8_t> bytes;
  std::vector<float> floats;
  std::vector<Scaling> scalings;  // of bytes: one per channel

  uint64_t example_count() const { return labels.size(); }
  // Values in one example.
  uint64_t value_count() const;

  // REQUIRES: example < example_count() and out.size() == value_count().
  void CopyExample(uint64_t example, std::span<float> out) const;

  // Keeps the first EXAMPLES; 0 or more than there are keeps all.
  void Truncate(uint64_t examples);

  bool operator==(const Dataset&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_DATASET_H_
