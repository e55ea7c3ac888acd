#include "worker/trainer/model_output.h"

#include <glog/logging.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "worker/batches/batch_buffer.h"
#include "worker/trainer/model_file.h"

namespace thinwire {

absl::StatusOr<BatchResult> TestServerParameters(Client& client, Model& model, const Dataset& test,
                                                 ModelParameters& parameters) {
  ASSIGN_OR_RETURN(parameters, client.masters().ReadAverages());
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    model.Bind(i, parameters[i], Model::Place::kHost);
  }
  absl::StatusOr<BatchResult> result = Evaluate(model, test);
  const auto place = client.device() == nullptr ? Model::Place::kHost : Model::Place::kDevice;
  for (uint32_t i = 0; i < parameters.size(); ++i) model.Bind(i, client.replica(i), place);
  return result;
}

absl::Status ModelOutput::Write(const BatchResult& test, Step step, uint64_t epoch) {
  if (keeps_best() && written_ && !test.IsBetterThan(written_->test)) return absl::OkStatus();
  const std::optional<double> accuracy = test.accuracy();
  const std::string name = accuracy.has_value() ? "test_accuracy" : "test_loss";
  const std::string figure = absl::StrFormat("%.4f", accuracy.value_or(test.mean_loss()));
  RETURN_IF_ERROR(WriteModelFile(options_.path, model_, parameters_,
                                 {{"job", options_.job},
                                  {"steps", absl::StrCat(step.value)},
                                  {"epoch", absl::StrCat(epoch)},
                                  {name, figure}}));
  written_ = {.test = test, .epoch = epoch};
  LOG(INFO) << options_.path << ": written after epoch " << epoch << ", " << name << " " << figure;
  return absl::OkStatus();
}

}  // namespace thinwire
