// Model files: the parameters and buffers of a model in a safetensors file, under the names of
// PyTorch's state_dict. In Python,
//
//   model.load_state_dict(safetensors.torch.load_file("model.safetensors"))
//
// loads a file into the same model (examples/models.py has the built-in ones).
#ifndef THINWIRE_WORKER_TRAINER_MODEL_FILE_H_
#define THINWIRE_WORKER_TRAINER_MODEL_FILE_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/models/model.h"

namespace thinwire {

// Writes the parameters, one array per tensor of MODEL, and the buffers of MODEL to the file PATH,
// which it replaces as a whole. METADATA is added to the header's {"format": "pt"}. Errors: errors
// of the file system, with the path; those of Model::Buffers. REQUIRES: the sizes of PARAMETERS are
// those of the model's tensors.
absl::Status WriteModelFile(const std::string& path, const Model& model,
                            std::span<const std::vector<float>> parameters,
                            const std::map<std::string, std::string>& metadata);

// Reads a model file. Copies its buffers into MODEL and returns its parameters, one array per
// tensor of MODEL. Errors, with the path: NotFound; InvalidArgument if the file is no safetensors
// file, or its tensors differ from the model's in name, type or shape.
absl::StatusOr<std::vector<std::vector<float>>> ReadModelFile(const std::string& path,
                                                              Model& model);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_MODEL_FILE_H_
