#include "proto/join_tensors.h"

namespace thinwire {

std::vector<TensorShape> TensorsOf(const JoinRequest& join) {
  std::vector<TensorShape> tensors;
  for (const Tensor& tensor : join.tensors()) {
    tensors.push_back({.name = tensor.name(),
                       .shape = {tensor.shape().begin(), tensor.shape().end()},
                       .group = tensor.group(),
                       .whole = tensor.whole(),
                       .apart = tensor.apart()});
  }
  return tensors;
}

void SetTensors(std::span<const TensorShape> tensors, JoinRequest& join) {
  join.clear_tensors();
  for (const TensorShape& shape : tensors) {
    Tensor& tensor = *join.add_tensors();
    tensor.set_name(shape.name);
    tensor.mutable_shape()->Add(shape.shape.begin(), shape.shape.end());
    tensor.set_group(shape.group);
    tensor.set_whole(shape.whole);
    tensor.set_apart(shape.apart);
  }
}

}  // namespace thinwire
