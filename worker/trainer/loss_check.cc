#include "worker/trainer/loss_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/batches/batch_buffer.h"

namespace thinwire {
namespace {

constexpr uint64_t kExamples = 2;

}  // namespace

absl::Status CheckLoss(Model& model, const Dataset& train) {
  std::vector<uint32_t> examples(std::min(kExamples, train.example_count()));
  std::iota(examples.begin(), examples.end(), 0u);
  BatchBuffer buffer(train);
  ASSIGN_OR_RETURN(const BatchResult trained, model.Train(
                                                  buffer.Gather(examples), /*loss_scale=*/1,
                                                  [](uint32_t) { return absl::OkStatus(); },
                                                  [](uint32_t, const TensorGradient&) {}));
  model.ResetBuffers();
  if (!std::isfinite(trained.loss_sum)) {
    return absl::InvalidArgumentError(
        absl::StrCat("loss: script: not finite for the first ", examples.size(),
                     " training examples (expected a finite loss, got ", trained.mean_loss(), ")"));
  }
  ASSIGN_OR_RETURN(const BatchResult once, model.Evaluate(buffer.Gather(examples)));
  examples.insert(examples.end(), examples.begin(), examples.end());
  ASSIGN_OR_RETURN(const BatchResult twice, model.Evaluate(buffer.Gather(examples)));
  model.ResetBuffers();
  const double loss = once.mean_loss();
  if (std::abs(loss) > 1e-6 && std::abs(twice.mean_loss() - 2 * loss) < 1e-3 * std::abs(loss)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "loss: script: a sum over the batch (expected the mean over the examples, got ", loss,
        " for ", once.examples, " examples and ", twice.mean_loss(), " for these examples twice)"));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
