#include "worker/models/resnet20.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/models/image_shape.h"
#include "worker/models/layers.h"

namespace thinwire {
namespace {

constexpr int kStages = 3;
constexpr int kBlocksPerStage = 3;

// One convolution with its normalisation.
struct Unit {
  uint32_t first = 0;  // parameter
  at::Tensor mean;
  at::Tensor variance;

  at::Tensor Apply(const at::Tensor& x, bool training, const Network::Read& read,
                   int64_t stride) const {
    return ApplyNormalisedConvolution(x, read, first, stride, training, mean, variance);
  }
};

struct Block {
  Unit first;
  Unit second;
  int64_t stride = 1;
};

Unit MakeUnit(const std::string& name, int64_t inputs, int64_t outputs, LayerMaker& make,
              Network& network) {
  const uint32_t first = make.NormalisedConvolution(name, inputs, outputs);
  const size_t buffers = network.buffers.size();
  return {.first = first,
          .mean = network.buffers[buffers - 2],
          .variance = network.buffers[buffers - 1]};
}

// Option A: every second pixel, and zeros for the channels that are new.
at::Tensor Shortcut(const at::Tensor& x, int64_t stride) {
  if (stride == 1) return x;
  const at::Tensor fewer = x.slice(2, 0, x.size(2), stride).slice(3, 0, x.size(3), stride);
  const int64_t half = x.size(1) / 2;
  return at::constant_pad_nd(fewer, {0, 0, 0, 0, half, half});
}

at::Tensor ApplyBlock(const Block& block, const at::Tensor& x, bool training,
                      const Network::Read& read) {
  const at::Tensor y = at::relu(block.first.Apply(x, training, read, block.stride));
  return at::relu(block.second.Apply(y, training, read, 1) + Shortcut(x, block.stride));
}

std::vector<Block> MakeBlocks(LayerMaker& make, Network& network) {
  std::vector<Block> blocks;
  int64_t width = 16;
  for (int stage = 0; stage < kStages; ++stage) {
    for (int i = 0; i < kBlocksPerStage; ++i) {
      const bool halves = stage > 0 && i == 0;
      const int64_t inputs = width;
      if (halves) width *= 2;
      const std::string name = absl::StrCat("stage", stage + 1, ".block", i + 1);
      Block block;
      block.stride = halves ? 2 : 1;
      block.first = MakeUnit(name + ".conv1", inputs, width, make, network);
      block.second = MakeUnit(name + ".conv2", width, width, make, network);
      blocks.push_back(std::move(block));
    }
  }
  return blocks;
}

}  // namespace

absl::StatusOr<Network> MakeResnet20(std::span<const int64_t> example_shape, int64_t class_count,
                                     uint64_t seed) {
  const absl::Status fits = CheckImageShape("resnet20", example_shape);
  if (!fits.ok()) return fits;
  Network network;
  network.name = "resnet20";
  LayerMaker make(seed, network);
  const Unit stem = MakeUnit("conv", example_shape[0], 16, make, network);
  const std::vector<Block> blocks = MakeBlocks(make, network);
  const uint32_t dense = make.Dense("dense", 64, class_count);
  network.forward = [stem, blocks, dense](const at::Tensor& x, bool training,
                                          const Network::Read& read) {
    at::Tensor y = at::relu(stem.Apply(x, training, read, 1));
    for (const Block& block : blocks) y = ApplyBlock(block, y, training, read);
    return ApplyDense(y.mean({2, 3}), read, dense);
  };
  return network;
}

}  // namespace thinwire
