// BoundModel owns a model and the memory of the model's parameters. For tests only: in a worker,
// the client owns this memory.
#ifndef THINWIRE_WORKER_MODELS_BOUND_MODEL_H_
#define THINWIRE_WORKER_MODELS_BOUND_MODEL_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "worker/models/model.h"

namespace thinwire {

struct BoundModel {
  std::unique_ptr<Model> model;
  std::vector<std::vector<float>> replica;  // the parameters of each tensor
  std::vector<uint32_t> gated;  // tensor numbers in the order of the last Train()'s gate calls
  std::vector<uint32_t> sunk;   // tensor numbers in the order of the last Train()'s sink calls
  std::vector<std::vector<float>> gradients;

  explicit BoundModel(std::unique_ptr<Model> m, Model::Place place = Model::Place::kHost)
      : model(std::move(m)) {
    for (uint32_t i = 0; i < model->tensors().size(); ++i) {
      const auto values = model->initial(i);
      replica.emplace_back(values.begin(), values.end());
    }
    for (uint32_t i = 0; i < replica.size(); ++i) model->Bind(i, replica[i], place);
  }

  absl::StatusOr<BatchResult> Train(const Batch& batch, float loss_scale = 1) {
    gated.clear();
    sunk.clear();
    gradients.assign(replica.size(), {});
    return model->Train(
        batch, loss_scale,
        [this](uint32_t i) {
          gated.push_back(i);
          return absl::OkStatus();
        },
        [this](uint32_t i, const TensorGradient& gradient) {
          sunk.push_back(i);
          gradients[i].assign(gradient.values.begin(), gradient.values.end());
        });
  }

  // Applies one step of gradient descent: replica -= rate * gradients.
  void Descend(float rate) {
    for (size_t i = 0; i < replica.size(); ++i) {
      for (size_t k = 0; k < replica[i].size(); ++k) replica[i][k] -= rate * gradients[i][k];
    }
  }
};

// A batch that is easy to learn. The values of an example are split into one part per class; the
// part of the example's own class has large values.
struct ToyBatch {
  std::vector<float> x;
  std::vector<int64_t> labels;

  // Makes `count` examples of `values` values each, with labels below `classes`.
  ToyBatch(int64_t count, int64_t values, int64_t classes) {
    uint32_t noise = 12345;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t label = i % classes;
      labels.push_back(label);
      for (int64_t k = 0; k < values; ++k) {
        noise = noise * 1664525 + 1013904223;
        const float dim = static_cast<float>(noise >> 8) * 0x1p-24f - 0.5f;
        x.push_back(k * classes / values == label ? 1.5f + dim : dim);
      }
    }
  }

  Batch batch() const { return {.x = x, .labels = labels}; }
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_MODELS_BOUND_MODEL_H_
