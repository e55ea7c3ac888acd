#include "worker/models/torchscript.h"

#include <c10/core/GradMode.h>
#include <torch/script.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/files/file_kind.h"
#include "worker/models/libtorch.h"

namespace thinwire {
namespace {

// Returns the bytes between the first and the last value of TENSOR. REQUIRES: TENSOR is not empty.
std::span<const uint8_t> MemoryOf(const at::Tensor& tensor) {
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return {static_cast<const uint8_t*>(tensor.data_ptr()),
          static_cast<size_t>((last + 1) * static_cast<int64_t>(tensor.element_size()))};
}

// Makes TENSOR the parameter NAME of MODULE.
void Replace(torch::jit::Module module, const std::string& name, const at::Tensor& tensor) {
  const std::vector<std::string> path = absl::StrSplit(name, '.');
  for (size_t i = 0; i + 1 < path.size(); ++i) module = module.attr(path[i]).toModule();
  module.setattr(path.back(), tensor);
}

// If TENSOR, the parameter NAME of MODULE, has the memory of a parameter in NETWORK, adds it as
// another name of that parameter, so that the gradient is the sum over both uses, and returns true.
// Errors: InvalidArgument if the memory is the same only in part or in another shape.
absl::StatusOr<bool> AddIfTied(const torch::jit::Module& module, const std::string& name,
                               const at::Tensor& tensor, NeuralNetwork& network) {
  const std::span<const uint8_t> memory = MemoryOf(tensor);
  for (uint32_t i = 0; i < network.parameters.size(); ++i) {
    const at::Tensor& earlier = network.parameters[i];
    const std::span<const uint8_t> other = MemoryOf(earlier);
    if (std::max(memory.data(), other.data()) >=
        std::min(memory.data() + memory.size(), other.data() + other.size())) {
      continue;
    }
    if (memory.data() != other.data() || tensor.sizes() != earlier.sizes() ||
        tensor.strides() != earlier.strides()) {
      return absl::InvalidArgumentError(absl::StrCat(
          network.name, ": parameter ", name,
          ": wrong memory (expected its own, or all values of another parameter in the same shape, "
          "got a part or another shape of ",
          network.names[i], ")"));
    }
    Replace(module, name, earlier);
    network.aliases.push_back({name, i});
    return true;
  }
  return false;
}

// Adds the module's parameters and buffers to the network.
absl::Status AddTensors(const torch::jit::Module& module, NeuralNetwork& network) {
  for (const auto& parameter : module.named_parameters()) {
    at::Tensor tensor = parameter.value;
    if (!tensor.requires_grad()) {
      network.frozen.push_back({parameter.name, tensor});
      continue;
    }
    if (tensor.scalar_type() != at::kFloat || tensor.numel() == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          network.name, ": parameter ", parameter.name,
          ": unsupported type or shape (expected non-empty Float, got ", FormText(tensor), ")"));
    }
    ASSIGN_OR_RETURN(const bool is_tied, AddIfTied(module, parameter.name, tensor, network));
    if (is_tied) continue;
    network.names.push_back(parameter.name);
    network.parameters.push_back(tensor);
  }
  for (at::Tensor& tensor : network.parameters) tensor.set_data(tensor.detach().contiguous());
  if (network.parameters.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        network.name,
        ": no parameter requires a gradient (expected at least one; a module frozen by "
        "torch.jit.freeze has none)"));
  }
  for (const auto& buffer : module.named_buffers()) {
    network.buffers.push_back({buffer.name, buffer.value});
  }
  return absl::OkStatus();
}

// Checks that the forward method takes the arguments that LOSS requires.
absl::Status CheckArguments(const std::string& path, const torch::jit::Module& module,
                            LossKind loss) {
  const std::vector<c10::Argument>& arguments =
      module.get_method("forward").function().getSchema().arguments();
  std::vector<std::string> names;
  size_t required = 0;
  for (size_t i = 1; i < arguments.size(); ++i) {  // without self
    names.push_back(arguments[i].name());
    if (!arguments[i].default_value().has_value()) ++required;
  }
  const bool of_loss = loss == LossKind::kScript;
  const size_t expected = of_loss ? 2 : 1;
  if (required <= expected && expected <= names.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": forward: wrong number of arguments (expected ",
                   of_loss ? "2, the examples and the targets, with loss: script"
                           : "1, the examples, with loss: cross_entropy",
                   ", got ", names.size(), ": ", absl::StrJoin(names, ", "), ")"));
}

absl::Status CheckForward(const NeuralNetwork& network, const ExampleForm& form) {
  c10::NoGradGuard no_gradient;
  std::vector<int64_t> shape = {2};
  shape.insert(shape.end(), form.shape.begin(), form.shape.end());
  const std::string place =
      absl::StrCat(network.name, ": forward of [", absl::StrJoin(shape, ", "), "]");
  try {
    const at::Tensor logits =
        network.forward(at::zeros(shape, TorchType(form.type)), /*training=*/false,
                        [&](uint32_t i) { return network.parameters[i]; });
    if (logits.dim() == 2 && logits.size(0) == 2 && logits.size(1) == form.class_count &&
        logits.scalar_type() == at::kFloat) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(place, ": wrong logits (expected Float [2, ",
                                                   form.class_count, "], got ", FormText(logits),
                                                   ")"));
  } catch (const std::exception& error) {
    return TorchError(place, error);
  }
}

// Returns the error for a file that LibTorch cannot load.
absl::Status NotTorchScript(const std::string& path, const std::exception& error) {
  TorchError(path, error).IgnoreError();  // logs the details
  std::string start(kFileKindBytes, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(in.gcount()));
  std::string kind(FileKind(start));
  // torch.save also writes zip archives, but without the constants of a program.
  if (absl::StrContains(error.what(), "constants.pkl"))
    kind = "a file of torch.save, such as a state_dict";
  return absl::InvalidArgumentError(absl::StrCat(path,
                                                 ": not a TorchScript file (expected a file of "
                                                 "torch.jit.script(model).save(...), got ",
                                                 kind.empty() ? "a text" : kind, ")"));
}

}  // namespace

absl::StatusOr<NeuralNetwork> LoadTorchScript(const std::string& path, const ExampleForm& form,
                                              LossKind loss) {
  if (!std::filesystem::is_regular_file(path)) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file (expected a TorchScript file)"));
  }
  NeuralNetwork network;
  network.name = path;
  torch::jit::Module module;
  try {
    module = torch::jit::load(path, at::kCPU);
  } catch (const std::exception& error) {
    return NotTorchScript(path, error);
  }
  try {
    if (!module.find_method("forward")) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": no method forward (expected one)"));
    }
    RETURN_IF_ERROR(CheckArguments(path, module, loss));
    RETURN_IF_ERROR(AddTensors(module, network));
  } catch (const std::exception& error) {
    return TorchError(path, error);
  }
  const auto count = static_cast<uint32_t>(network.parameters.size());
  auto call = [module, count](std::vector<c10::IValue> inputs, bool training,
                              const NeuralNetwork::Read& read) mutable {
    for (uint32_t i = 0; i < count; ++i) read(i);
    if (module.is_training() != training) module.train(training);
    return module.forward(std::move(inputs)).toTensor();
  };
  if (loss == LossKind::kScript) {
    network.loss = [call](const at::Tensor& x, const at::Tensor& y, bool training,
                          const NeuralNetwork::Read& read) mutable {
      return call({x, y}, training, read);
    };
    return network;
  }
  network.forward = [call](const at::Tensor& x, bool training,
                           const NeuralNetwork::Read& read) mutable {
    return call({x}, training, read);
  };
  RETURN_IF_ERROR(CheckForward(network, form));
  return network;
}

}  // namespace thinwire
