#include "worker/models/torch_model.h"

#include <c10/core/GradMode.h>
#include <glog/logging.h>

#include <algorithm>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/models/libtorch.h"

namespace thinwire {
namespace {

uint64_t CountCorrect(const at::Tensor& logits, const at::Tensor& labels) {
  return static_cast<uint64_t>(logits.argmax(1).eq(labels).sum().item<int64_t>());
}

// Returns the name of a type in safetensors files, or "" if it has none.
std::string SafetensorsType(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "F32";
    case at::kDouble:
      return "F64";
    case at::kHalf:
      return "F16";
    case at::kBFloat16:
      return "BF16";
    case at::kLong:
      return "I64";
    case at::kInt:
      return "I32";
    case at::kShort:
      return "I16";
    case at::kChar:
      return "I8";
    case at::kByte:
      return "U8";
    case at::kBool:
      return "BOOL";
    default:
      return "";
  }
}

// Returns the number of values of a tensor.
uint64_t CountOf(const std::vector<int64_t>& shape) {
  return TensorShape{.name = "", .shape = shape}.value_count();
}

// Returns the shape of a batch of COUNT examples.
std::vector<int64_t> BatchShape(uint64_t count, const std::vector<int64_t>& example_shape) {
  std::vector<int64_t> shape = {static_cast<int64_t>(count)};
  shape.insert(shape.end(), example_shape.begin(), example_shape.end());
  return shape;
}

// Returns a tensor of SHAPE in the memory of VALUES. Nothing may write to the tensor.
at::Tensor ViewAsTensor(const ValuesView& values, const std::vector<int64_t>& shape) {
  return std::visit(
      [&](const auto& span) {
        using Value = std::remove_cv_t<typename std::decay_t<decltype(span)>::element_type>;
        // The const_cast is necessary because ATen has no views of constant memory.
        return at::from_blob(const_cast<Value*>(span.data()), shape,
                             c10::CppTypeToScalarType<Value>::value);
      },
      values);
}

// Returns the values of the tensor `floats` in the tensor's own memory. REQUIRES: `floats` is fp32
// and contiguous.
std::span<float> Span(const at::Tensor& floats) {
  return {floats.data_ptr<float>(), static_cast<size_t>(floats.numel())};
}

}  // namespace

TorchModel::TorchModel(NeuralNetwork network, ExampleForm form, at::Device device,
                       at::ScalarType precision)
    : form_(std::move(form)),
      device_(device),
      precision_(precision),
      network_(std::move(network)),
      bound_(network_.parameters.size()),
      delivered_(network_.parameters.size()) {
  for (uint32_t i = 0; i < network_.parameters.size(); ++i) {
    at::Tensor& parameter = network_.parameters[i];
    tensors_.push_back({.name = network_.names[i], .shape = parameter.sizes().vec()});
    initial_.push_back(parameter.detach());
    parameter.set_data(initial_.back().to(device_));
    parameter.register_hook([this, i](const at::Tensor& gradient) { Deliver(i, gradient); });
  }
  for (const NamedTensor& buffer : State()) buffer.tensor.set_data(buffer.tensor.to(device_));
  for (const NamedTensor& buffer : network_.buffers) {
    initial_buffers_.push_back(buffer.tensor.clone());
  }
}

std::span<const float> TorchModel::initial(uint32_t tensor) const { return Span(initial_[tensor]); }

void TorchModel::Bind(uint32_t tensor, std::span<float> memory, Place place) {
  CHECK_EQ(memory.size(), tensors_[tensor].value_count());
  const at::Device device = place == Place::kDevice ? device_ : at::Device(at::kCPU);
  bound_[tensor] = at::from_blob(memory.data(), tensors_[tensor].shape,
                                 at::TensorOptions(at::kFloat).device(device));
  // Parameters that are bound to the host's memory need memory of their own on the device.
  network_.parameters[tensor].set_data(
      device == device_
          ? bound_[tensor]
          : at::empty(tensors_[tensor].shape, at::TensorOptions(at::kFloat).device(device_)));
}

absl::StatusOr<TorchModel::Tensors> TorchModel::Load(const Batch& batch) const {
  const uint64_t count = computes_loss() ? SizeOf(batch.x) / CountOf(form_.shape)
                                         : static_cast<uint64_t>(batch.labels.size());
  const std::vector<int64_t> shape = BatchShape(count, form_.shape);
  if (count == 0 || SizeOf(batch.x) != CountOf(shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat(network_.name, ": wrong batch (expected [", absl::StrJoin(shape, ", "),
                     "] with at least one example, got ", SizeOf(batch.x), " values)"));
  }
  at::manual_seed(batch.random_seed);  // seeds the generators of the CPU and of all CUDA devices
  const at::Tensor x = ViewAsTensor(batch.x, shape).to(device_);
  if (computes_loss()) {
    const std::vector<int64_t> targets = BatchShape(count, form_.target_shape);
    if (SizeOf(batch.targets) != CountOf(targets)) {
      return absl::InvalidArgumentError(absl::StrCat(network_.name, ": wrong targets (expected [",
                                                     absl::StrJoin(targets, ", "), "], got ",
                                                     SizeOf(batch.targets), " values)"));
    }
    return Tensors{.x = x, .y = ViewAsTensor(batch.targets, targets).to(device_)};
  }
  for (int64_t label : batch.labels) {
    if (label >= 0 && label < form_.class_count) continue;
    return absl::InvalidArgumentError(absl::StrCat(network_.name,
                                                   ": label out of range (expected 0 to ",
                                                   form_.class_count - 1, ", got ", label, ")"));
  }
  return Tensors{.x = x, .y = ViewAsTensor(batch.labels, {shape[0]}).to(device_)};
}

at::Tensor TorchModel::Read(uint32_t parameter, const Gate* gate) {
  at::Tensor& tensor = network_.parameters[parameter];
  if (read_[parameter]) return tensor;
  read_[parameter] = true;
  // Only an exception could abort the forward pass. If the gate fails, the forward pass therefore
  // continues with outdated parameters, and Forward() discards its result.
  if (gate != nullptr && gate_status_.ok()) gate_status_ = (*gate)(parameter);
  if (bound_[parameter].defined() && bound_[parameter].device() != device_) {
    c10::NoGradGuard no_gradient;
    tensor.copy_(bound_[parameter]);
  }
  return tensor;
}

absl::StatusOr<at::Tensor> TorchModel::Forward(const Tensors& batch, bool training,
                                               const Gate* gate) {
  read_.assign(tensors_.size(), false);
  gate_status_ = absl::OkStatus();
  const NeuralNetwork::Read read = [&](uint32_t i) { return Read(i, gate); };
  at::Tensor result;
  try {
    const Autocast autocast(device_.type(), precision_);
    result = computes_loss() ? network_.loss(batch.x, batch.y, training, read)
                             : network_.forward(batch.x, training, read);
  } catch (const std::exception& error) {
    if (gate_status_.ok()) {
      const std::string inputs =
          computes_loss() ? absl::StrCat(" of x ", FormText(batch.x), " and y ", FormText(batch.y))
                          : "";
      return TorchError(absl::StrCat(network_.name, ": forward", inputs), error);
    }
  }
  if (!gate_status_.ok()) return gate_status_;
  return computes_loss() ? CheckedLoss(result) : CheckedLogits(result, batch.x.size(0));
}

absl::StatusOr<at::Tensor> TorchModel::CheckedLogits(const at::Tensor& logits,
                                                     int64_t count) const {
  const at::Tensor fp32 = logits.scalar_type() == precision_ ? logits.to(at::kFloat) : logits;
  if (fp32.dim() == 2 && fp32.size(0) == count && fp32.size(1) == form_.class_count &&
      fp32.scalar_type() == at::kFloat) {
    return fp32;
  }
  return absl::InvalidArgumentError(absl::StrCat(network_.name, ": wrong logits (expected Float [",
                                                 count, ", ", form_.class_count, "], got ",
                                                 FormText(fp32), ")"));
}

absl::StatusOr<at::Tensor> TorchModel::CheckedLoss(const at::Tensor& loss) const {
  if (loss.dim() == 0 && at::isFloatingType(loss.scalar_type())) return loss.to(at::kFloat);
  return absl::InvalidArgumentError(
      absl::StrCat(network_.name,
                   ": forward: wrong loss (expected a scalar, Float [], such as "
                   "the mean over the batch, got ",
                   FormText(loss), ")"));
}

void TorchModel::Deliver(uint32_t parameter, const at::Tensor& gradient) {
  if (sink_ == nullptr) return;
  const at::Tensor& bound = bound_[parameter];
  const at::Device device = bound.defined() ? bound.device() : at::Device(at::kCPU);
  at::Tensor dense = gradient.is_sparse() ? gradient.to_dense() : gradient;
  const at::Tensor& earlier_parts = network_.parameters[parameter].grad();
  if (earlier_parts.defined()) dense = dense + earlier_parts;
  // Makes a new tensor for the gradient in every step, because the encoder may still read the
  // gradient of the previous step.
  const auto owner = std::make_shared<const at::Tensor>(dense.detach().to(device).contiguous());
  delivered_[parameter] = true;
  (*sink_)(parameter, {.values = Span(*owner), .owner = owner, .wait = RecordCompletion(device)});
}

absl::Status TorchModel::Backward(const at::Tensor& loss, const Sink* sink) {
  delivered_.assign(tensors_.size(), false);
  sink_ = sink;
  absl::Status status;
  try {
    if (loss.requires_grad()) loss.backward();
  } catch (const std::exception& error) {
    status = TorchError(absl::StrCat(network_.name, ": backward"), error);
  }
  // Delivers zero gradients for the parameters that the batch did not use, in backward order.
  for (auto i = static_cast<uint32_t>(tensors_.size());
       sink_ != nullptr && status.ok() && i-- > 0;) {
    if (!delivered_[i]) Deliver(i, at::zeros(tensors_[i].shape, device_));
  }
  sink_ = nullptr;
  return status;
}

absl::StatusOr<BatchResult> TorchModel::Train(const Batch& batch, float loss_scale,
                                              const Gate& gate, const Sink& sink) {
  ASSIGN_OR_RETURN(const Tensors tensors, Load(batch));
  for (at::Tensor& parameter : network_.parameters) parameter.mutable_grad().reset();
  BatchResult result = {.loss_only = computes_loss()};
  const auto count = static_cast<uint64_t>(tensors.x.size(0));
  const uint64_t part_size = batch.part_size == 0 ? count : batch.part_size;
  while (result.examples < count) {
    const bool first = result.examples == 0;
    const uint64_t part_count = std::min(part_size, count - result.examples);
    const auto part_of = [&](const at::Tensor& tensor) {
      return tensor.narrow(0, static_cast<int64_t>(result.examples),
                           static_cast<int64_t>(part_count));
    };
    const Tensors part = {.x = part_of(tensors.x), .y = part_of(tensors.y)};
    ASSIGN_OR_RETURN(const at::Tensor output,
                     Forward(part, /*training=*/true, first ? &gate : nullptr));
    const at::Tensor loss = computes_loss() ? output : at::cross_entropy_loss(output, part.y);
    // Later, a module may return a constant, such as the loss of a batch of padding.
    had_gradient_ = had_gradient_ || loss.requires_grad();
    if (!had_gradient_) {
      return absl::InvalidArgumentError(
          absl::StrCat(network_.name,
                       ": forward: the result has no gradient (expected one that depends on a "
                       "parameter, got one without: see detach() and torch.no_grad())"));
    }
    // The gradient of the whole batch's mean loss is the sum of the parts' gradients, each weighted
    // by its part of the examples.
    const double factor = loss_scale * static_cast<double>(part_count) / static_cast<double>(count);
    const bool last = result.examples + part_count == count;
    RETURN_IF_ERROR(Backward(factor == 1 ? loss : loss * factor, last ? &sink : nullptr));
    result.loss_sum += loss.item<double>() * static_cast<double>(part_count);
    if (!computes_loss()) result.correct += CountCorrect(output.detach(), part.y);
    result.examples += part_count;
  }
  return result;
}

absl::StatusOr<BatchResult> TorchModel::Evaluate(const Batch& batch) {
  c10::NoGradGuard no_gradient;
  ASSIGN_OR_RETURN(const Tensors tensors, Load(batch));
  ASSIGN_OR_RETURN(const at::Tensor output, Forward(tensors, /*training=*/false, nullptr));
  const auto count = static_cast<uint64_t>(tensors.x.size(0));
  if (computes_loss()) {
    return BatchResult{.loss_sum = output.item<double>() * static_cast<double>(count),
                       .examples = count,
                       .loss_only = true};
  }
  const at::Tensor loss =
      at::cross_entropy_loss(output, tensors.y, /*weight=*/{}, at::Reduction::Sum);
  return BatchResult{.loss_sum = loss.item<double>(),
                     .correct = CountCorrect(output, tensors.y),
                     .examples = count};
}

std::vector<NamedTensor> TorchModel::State() const {
  std::vector<NamedTensor> state = network_.buffers;
  state.insert(state.end(), network_.frozen.begin(), network_.frozen.end());
  return state;
}

absl::StatusOr<std::vector<ModelBuffer>> TorchModel::Buffers() const {
  std::vector<ModelBuffer> buffers;
  for (const NamedTensor& named : State()) {
    const at::Tensor values = named.tensor.detach().to(at::kCPU).contiguous();
    const std::string dtype = SafetensorsType(values.scalar_type());
    if (dtype.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          network_.name, ": buffer ", named.name,
          ": unsupported type in a model file (expected a real number, an integer or a bool, got ",
          at::toString(values.scalar_type()), ")"));
    }
    const auto* bytes = static_cast<const uint8_t*>(values.data_ptr());
    buffers.push_back({.name = named.name,
                       .dtype = dtype,
                       .shape = values.sizes().vec(),
                       .bytes = {bytes, bytes + values.nbytes()}});
  }
  return buffers;
}

void TorchModel::SetBuffers(std::span<const ModelBuffer> buffers) {
  c10::NoGradGuard no_gradient;
  const std::vector<NamedTensor> state = State();
  CHECK_EQ(buffers.size(), state.size());
  for (size_t i = 0; i < state.size(); ++i) {
    const at::Tensor& tensor = state[i].tensor;
    CHECK_EQ(buffers[i].bytes.size(), tensor.nbytes());
    // The const_cast is necessary because ATen has no views of constant memory.
    tensor.copy_(at::from_blob(const_cast<uint8_t*>(buffers[i].bytes.data()), buffers[i].shape,
                               at::TensorOptions(tensor.scalar_type())));
  }
}

void TorchModel::ResetBuffers() {
  c10::NoGradGuard no_gradient;
  for (size_t i = 0; i < initial_buffers_.size(); ++i) {
    network_.buffers[i].tensor.copy_(initial_buffers_[i]);
  }
}

absl::Status TorchModel::UpdateBuffers(const Batch& batch) {
  c10::NoGradGuard no_gradient;
  ASSIGN_OR_RETURN(const Tensors tensors, Load(batch));
  return Forward(tensors, /*training=*/true, nullptr).status();
}

}  // namespace thinwire
