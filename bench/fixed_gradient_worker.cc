#include "bench/fixed_gradient_worker.h"

#include <glog/logging.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace thinwire {

FixedGradientWorker::FixedGradientWorker(const std::string& address, ClientOptions options,
                                         const std::vector<TensorShape>& tensors,
                                         const Credentials& credentials)
    : transport_({address}, credentials) {
  std::vector<std::span<const float>> initial;
  for (const TensorShape& tensor : tensors) {
    gradients_.push_back(std::make_shared<std::vector<float>>(tensor.value_count(), 1e-3f));
    initial.emplace_back(*gradients_.back());
  }
  options.memory = &arena_;
  client_ = *Client::Make(std::move(options), tensors, transport_, threads_);
  step_ = *client_->Join(initial);
  CHECK(client_->WaitAll().ok());
}

void FixedGradientWorker::Step() {
  client_->BeginStep(step_, 32);
  for (size_t t = gradients_.size(); t-- > 0;) {
    client_->Ready(static_cast<uint32_t>(t), *gradients_[t], gradients_[t]);
  }
  CHECK(client_->EndStep().ok());
  step_ = *client_->NextStep();
  CHECK(client_->WaitAll().ok());
}

}  // namespace thinwire
