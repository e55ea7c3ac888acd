#include "worker/models/built_in.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/models/layers.h"

namespace thinwire {
namespace {

int64_t ValueCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t dimension : shape) count *= dimension;
  return count;
}

// Checks that `shape` is [channels, height, width] with height and width of at least 4. Errors:
// InvalidArgument.
absl::Status CheckImageShape(const std::string& model, std::span<const int64_t> shape) {
  if (shape.size() == 3 && shape[0] >= 1 && shape[1] >= 4 && shape[2] >= 4) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      model,
      ": unsupported example shape (expected [channels, height, width] of at least 4x4, got [",
      absl::StrJoin(shape, ", "), "])"));
}

constexpr int kStages = 3;
constexpr int kBlocksPerStage = 3;

// A convolution followed by batch normalization.
struct Unit {
  uint32_t first = 0;  // index of the convolution's first parameter
  RunningMoments moments;

  at::Tensor Apply(const at::Tensor& x, bool training, const NeuralNetwork::Read& read,
                   int64_t stride) const {
    return ApplyNormalizedConvolution(x, read, first, stride, training, moments);
  }
};

struct Block {
  Unit first;
  Unit second;
  int64_t stride = 1;
};

// Makes a unit with the names PREFIXconvSUFFIX and PREFIXbnSUFFIX.
Unit MakeUnit(const std::string& prefix, const std::string& suffix, int64_t inputs, int64_t outputs,
              LayerMaker& make, NeuralNetwork& network) {
  const uint32_t first = make.NormalizedConvolution(
      absl::StrCat(prefix, "conv", suffix), absl::StrCat(prefix, "bn", suffix), inputs, outputs);
  const size_t end = network.buffers.size();
  return {.first = first,
          .moments = {.mean = network.buffers[end - 3].tensor,
                      .variance = network.buffers[end - 2].tensor,
                      .batch_count = network.buffers[end - 1].tensor}};
}

// Computes the shortcut of a residual block, which has no parameters (option A of He et al. 2016).
// If `stride` is 2, keeps every second row and column and pads the additional channels with zeros.
at::Tensor Shortcut(const at::Tensor& x, int64_t stride) {
  if (stride == 1) return x;
  const at::Tensor fewer = x.slice(2, 0, x.size(2), stride).slice(3, 0, x.size(3), stride);
  const int64_t half = x.size(1) / 2;
  return at::constant_pad_nd(fewer, {0, 0, 0, 0, half, half});
}

at::Tensor ApplyBlock(const Block& block, const at::Tensor& x, bool training,
                      const NeuralNetwork::Read& read) {
  const at::Tensor y = at::relu(block.first.Apply(x, training, read, block.stride));
  return at::relu(block.second.Apply(y, training, read, 1) + Shortcut(x, block.stride));
}

std::vector<Block> MakeBlocks(LayerMaker& make, NeuralNetwork& network) {
  std::vector<Block> blocks;
  int64_t width = 16;
  for (int stage = 0; stage < kStages; ++stage) {
    for (int i = 0; i < kBlocksPerStage; ++i) {
      const bool halves = stage > 0 && i == 0;
      const int64_t inputs = width;
      if (halves) width *= 2;
      const std::string prefix = absl::StrCat("stage", stage + 1, ".block", i + 1, ".");
      Block block;
      block.stride = halves ? 2 : 1;
      block.first = MakeUnit(prefix, "1", inputs, width, make, network);
      block.second = MakeUnit(prefix, "2", width, width, make, network);
      blocks.push_back(std::move(block));
    }
  }
  return blocks;
}

}  // namespace

NeuralNetwork MakeSoftmax(std::span<const int64_t> example_shape, int64_t class_count,
                          uint64_t seed) {
  NeuralNetwork network;
  network.name = "softmax";
  LayerMaker(seed, network).Dense("dense", ValueCount(example_shape), class_count);
  network.forward = [](const at::Tensor& x, bool, const NeuralNetwork::Read& read) {
    return ApplyDense(x.flatten(1), read, 0);
  };
  return network;
}

NeuralNetwork MakeMlp(std::span<const int64_t> example_shape, int64_t class_count, uint64_t seed) {
  NeuralNetwork network;
  network.name = "mlp";
  LayerMaker make(seed, network);
  const uint32_t dense1 = make.Dense("dense1", ValueCount(example_shape), 256);
  const uint32_t dense2 = make.Dense("dense2", 256, 128);
  const uint32_t dense3 = make.Dense("dense3", 128, class_count);
  network.forward = [=](const at::Tensor& x, bool, const NeuralNetwork::Read& read) {
    at::Tensor y = at::relu(ApplyDense(x.flatten(1), read, dense1));
    y = at::relu(ApplyDense(y, read, dense2));
    return ApplyDense(y, read, dense3);
  };
  return network;
}

absl::StatusOr<NeuralNetwork> MakeCnn(std::span<const int64_t> example_shape, int64_t class_count,
                                      uint64_t seed) {
  RETURN_IF_ERROR(CheckImageShape("cnn", example_shape));
  NeuralNetwork network;
  network.name = "cnn";
  LayerMaker make(seed, network);
  const uint32_t conv1 = make.Convolution("conv1", example_shape[0], 16, 5);
  const uint32_t conv2 = make.Convolution("conv2", 16, 32, 5);
  // The number of inputs of the first dense layer. Each of the two pooling layers before it halves
  // height and width.
  const int64_t features = 32 * (example_shape[1] / 4) * (example_shape[2] / 4);
  const uint32_t dense1 = make.Dense("dense1", features, 128);
  const uint32_t dense2 = make.Dense("dense2", 128, class_count);
  network.forward = [=](const at::Tensor& x, bool, const NeuralNetwork::Read& read) {
    at::Tensor y = at::max_pool2d(at::relu(ApplyConvolution(x, read, conv1)), 2);
    y = at::max_pool2d(at::relu(ApplyConvolution(y, read, conv2)), 2);
    y = at::relu(ApplyDense(y.flatten(1), read, dense1));
    return ApplyDense(y, read, dense2);
  };
  return network;
}

absl::StatusOr<NeuralNetwork> MakeResnet20(std::span<const int64_t> example_shape,
                                           int64_t class_count, uint64_t seed) {
  RETURN_IF_ERROR(CheckImageShape("resnet20", example_shape));
  NeuralNetwork network;
  network.name = "resnet20";
  LayerMaker make(seed, network);
  const Unit stem = MakeUnit("", "", example_shape[0], 16, make, network);
  const std::vector<Block> blocks = MakeBlocks(make, network);
  const uint32_t dense = make.Dense("dense", 64, class_count);
  network.forward = [stem, blocks, dense](const at::Tensor& x, bool training,
                                          const NeuralNetwork::Read& read) {
    at::Tensor y = at::relu(stem.Apply(x, training, read, 1));
    for (const Block& block : blocks) y = ApplyBlock(block, y, training, read);
    return ApplyDense(y.mean({2, 3}), read, dense);
  };
  return network;
}

}  // namespace thinwire
