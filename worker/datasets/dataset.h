// Dataset contains examples in memory, each with a class or with targets. Images are stored as
// bytes, as in their files, and are converted to floats only batch by batch. Fashion-MNIST therefore
// needs 55 MB instead of 220 MB.
//
//   a byte b of channel c becomes scale[c] * b + shift[c] = (b / 255 - mean[c]) / deviation[c]
//
// mean[c] and deviation[c] are the mean and the standard deviation of b / 255 over channel c of the
// training set. The source file of each image dataset contains them as constants.
#ifndef THINWIRE_WORKER_DATASETS_DATASET_H_
#define THINWIRE_WORKER_DATASETS_DATASET_H_

#include <cstdint>
#include <span>
#include <vector>

#include "worker/datasets/values.h"

namespace thinwire {

enum class Part { kTrain, kTest };

// The conversion of the bytes of one color channel to floats: scale * byte + shift.
struct Scaling {
  float scale = 1;
  float shift = 0;

  // Returns the scaling for a channel. MEAN and DEVIATION are the mean and the standard deviation
  // of the channel's bytes, both divided by 255.
  static Scaling Normalizing(double mean, double deviation);

  bool operator==(const Scaling&) const = default;
};

struct Dataset {
  std::vector<int64_t> example_shape;  // images: [channels, height, width]
  uint32_t class_count = 0;            // 0: the examples have targets instead of classes
  std::vector<int32_t> labels;         // one label per example, from 0 to class_count - 1

  // The values of all examples, row-major. Either `bytes`, for images, or `values` contains them;
  // the other is empty.
  std::vector<uint8_t> bytes;
  Values values;
  std::vector<Scaling> scalings;  // one Scaling per channel; used only with `bytes`

  // With loss: script, the targets of all examples and the shape of those of one example.
  Values targets;
  std::vector<int64_t> target_shape;

  uint64_t example_count() const;
  // Returns the number of values of one example.
  uint64_t value_count() const;
  // Returns the type of the values that GatherExamples() returns.
  ValueType value_type() const { return bytes.empty() ? TypeOf(values) : ValueType::kFloat; }

  // Copies the values of EXAMPLES to OUT, one example after the other; the bytes of images become
  // floats. REQUIRES: every number is below example_count().
  void GatherExamples(std::span<const uint32_t> examples, Values& out) const;
  // Copies the targets of EXAMPLES to OUT. REQUIRES: class_count is 0.
  void GatherTargets(std::span<const uint32_t> examples, Values& out) const;

  // Makes the labels the targets, of type int64 and shape [].
  void MakeLabelsTargets();

  // Removes all but the first `examples` examples. Removes none if `examples` is 0 or larger than
  // example_count().
  void Truncate(uint64_t examples);

  bool operator==(const Dataset&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_DATASETS_DATASET_H_
