// ModelOutput writes the trained model to a file. Only the evaluator uses it.
//
//   keep last   the final parameters
//   keep best   the parameters with the highest test accuracy, or with the lowest test loss if there
//               is no accuracy, at the end of an epoch or at the end of the run
//
// The file has the exact parameters of the servers (masters), or their moving averages if the job
// has a parameter_average, and the evaluator's buffers. The test result of a file is measured with
// both.
#ifndef THINWIRE_WORKER_TRAINER_MODEL_OUTPUT_H_
#define THINWIRE_WORKER_TRAINER_MODEL_OUTPUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "common/base/ids.h"
#include "worker/datasets/dataset.h"
#include "worker/models/model.h"

namespace thinwire {

struct ModelOutputOptions {
  enum class Keep { kLast, kBest };

  std::string path;
  Keep keep = Keep::kLast;
  std::string job;  // the job's name
};

// A model in a file.
struct WrittenModel {
  BatchResult test;
  uint64_t epoch = 0;  // the last finished epoch
};

// The parameters of a model, as one row-major array per tensor.
using ModelParameters = std::vector<std::vector<float>>;

// Reads the masters, or their averages, from the servers into PARAMETERS and returns the result of
// MODEL on TEST with them. Afterwards the model uses the client's replica again. Errors: those of
// Masters::ReadAverages and of the model.
absl::StatusOr<BatchResult> TestServerParameters(Client& client, Model& model, const Dataset& test,
                                                 ModelParameters& parameters);

// Not thread-safe.
class ModelOutput {
 public:
  // CLIENT, MODEL and TEST, the test set, must outlive this object.
  ModelOutput(ModelOutputOptions options, Client& client, Model& model, const Dataset& test)
      : options_(std::move(options)), client_(client), model_(model), test_(test) {}

  bool keeps_best() const { return options_.keep == ModelOutputOptions::Keep::kBest; }
  const std::string& path() const { return options_.path; }

  // Calls TestServerParameters() and keeps the parameters.
  absl::StatusOr<BatchResult> Test() {
    return TestServerParameters(client_, model_, test_, parameters_);
  }
  // Writes the parameters that the last call of Test() has read, with their result TEST. With `keep
  // best`, does nothing if an earlier file was at least as good. STEP is the number of finished
  // steps of the job. Errors: those of WriteModelFile.
  absl::Status Write(const BatchResult& test, Step step, uint64_t epoch);

  // Returns the model in the file, or nullopt if this object has written none.
  const std::optional<WrittenModel>& written() const { return written_; }

 private:
  const ModelOutputOptions options_;
  Client& client_;
  Model& model_;
  const Dataset& test_;
  ModelParameters parameters_;
  std::optional<WrittenModel> written_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_MODEL_OUTPUT_H_
