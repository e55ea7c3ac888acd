#include "worker/process/train.h"

#include <glog/logging.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "client/encode/device.h"
#include "client/gpu/gpu.h"
#include "client/options/job_client_options.h"
#include "client/transport/grpc_transport.h"
#include "common/base/status_macros.h"
#include "common/files/crc32c.h"
#include "common/memory/huge_page_arena.h"
#include "common/time/bandwidth_limit.h"
#include "common/time/watchdog.h"
#include "config/stability.h"
#include "worker/batches/batch_buffer.h"
#include "worker/batches/sampler.h"
#include "worker/datasets/load.h"
#include "worker/models/factory.h"
#include "worker/trainer/loss_check.h"
#include "worker/trainer/model_file.h"

namespace thinwire {

namespace {

// Returns a hash of the content of the file `path`, or 0 if `path` is empty.
absl::StatusOr<uint64_t> FileHash(const std::string& path) {
  if (path.empty()) return uint64_t{0};
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat("model_file: ", path, ": cannot be read"));
  std::vector<char> block(1 << 20);
  uint32_t crc = 0;
  uint64_t size = 0;
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    const auto count = static_cast<size_t>(in.gcount());
    crc = Crc32c(std::as_bytes(std::span(block).first(count)), crc);
    size += count;
  }
  return std::max<uint64_t>(1, size << 32 ^ crc);
}

// The device on which a worker trains.
struct TrainingDevice {
  std::unique_ptr<const Device> gpu;  // null: the client's tensors are in the host's memory
  std::string name;                   // the device's name for messages
};

// Opens the device of `task`. Errors: FailedPrecondition or InvalidArgument with the reason why the
// device is not available.
absl::StatusOr<TrainingDevice> OpenDevice(const TaskSpec& task) {
  ASSIGN_OR_RETURN(const std::optional<int> number, CudaDeviceOf(task));
  if (!number.has_value()) return TrainingDevice{.name = "cpu"};
  const std::string through_host = absl::StrCat("cuda:", *number, ", through the host");
  // Local steps change the parameters in the host's memory.
  if (task.local.enabled()) return TrainingDevice{.name = through_host};
  absl::StatusOr<std::unique_ptr<const Device>> gpu = OpenGpu(*number);
  if (gpu.ok()) {
    const std::string name = (*gpu)->name();
    return TrainingDevice{.gpu = *std::move(gpu), .name = name};
  }
  const std::string why(gpu.status().message());
  if (task.device != "auto") {
    return absl::FailedPreconditionError(
        absl::StrCat("device: ", task.device, " is not available: ", why));
  }
  LOG(WARNING) << "gradients and parameters are copied through the host: " << why;
  return TrainingDevice{.name = through_host};
}

}  // namespace

absl::StatusOr<Trainer::Ending> Train(const Setup& setup, ExecutorFactory& threads,
                                      Termination& termination, EventPrinter& events,
                                      Tracer* tracer, const std::string& page) {
  const TaskSpec& task = setup.spec.task;
  UseThreads(task.threads);
  ASSIGN_OR_RETURN(const TrainingDevice device, OpenDevice(task));
  // Connects while the data are loaded.
  GrpcTransport transport(setup.addresses, setup.credentials, Bandwidth(setup.bandwidth, threads));
  ASSIGN_OR_RETURN(const Datasets datasets, LoadDatasets(task));
  const Dataset& examples = datasets.train;
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, MakeModel(task, FormOf(examples)));
  if (task.loss == LossKind::kScript) RETURN_IF_ERROR(CheckLoss(*model, examples));
  Sampler sampler({.example_count = examples.example_count(),
                   .worker = *setup.worker,
                   .workers = setup.spec.rule.workers,
                   .batch_size = task.batch_size,
                   .batch_count = static_cast<uint32_t>(task.step_passes()),
                   .seed = task.seed,
                   .share = setup.share,
                   .epochs = task.epochs});
  ClientOptions options =
      MakeClientOptions(setup.spec, {.worker = *setup.worker,
                                     .planned_examples = examples.example_count() * task.epochs,
                                     .planned_steps = sampler.EpochBegin(task.epochs).value,
                                     .state_dir = setup.state_dir,
                                     .wait_for_servers = setup.wait_for_servers});
  options.config = setup.config;
  options.tracer = tracer;
  options.page = page;
  options.data_hash = ContentHash(datasets);
  ASSIGN_OR_RETURN(options.model_file_hash, FileHash(task.model_file));
  HugePageArena arena;
  options.memory = &arena;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Client> client,
      Client::Make(std::move(options), model->tensors(), transport, threads, device.gpu.get()));
  termination.SetCallback([&client] {
    sd_notify(/*unset_environment=*/0, "STOPPING=1");
    client->Stop();
  });
  const absl::Cleanup remove_callback = [&termination] { termination.SetCallback(nullptr); };
  // The locks of the client that waiting() takes are free if its threads work, however long a step
  // takes.
  const Watchdog watchdog([&client](const Watchdog::Alive& alive) {
    client->waiting();
    alive();
  });
  const std::optional<AdaptiveSpec>& adaptive = setup.spec.push.adaptive;
  Trainer trainer({.worker = *setup.worker,
                   .epochs = task.epochs,
                   .device = device.name,
                   .delay = setup.delay.value_or(setup.spec.DelayOf(*setup.worker)),
                   .batch_size = task.batch_size,
                   .accumulate = task.accumulate,
                   .local = task.local,
                   .keeps_state = !setup.state_dir.empty() &&
                                  setup.spec.recovery.durability != Durability::kNone,
                   .averages = setup.spec.optimizer.parameter_average != 0,
                   .job = setup.spec.name,
                   .loss_scaling = task.loss_scaling(),
                   .stop_on_divergence = task.stop_on_divergence,
                   .divergence_advice = DivergenceAdvice(setup.config),
                   .trial_steps = adaptive.has_value() ? adaptive->speculate_steps : 0,
                   .output = setup.output},
                  {.client = *client,
                   .model = *model,
                   .train = examples,
                   .test = datasets.test,
                   .sampler = sampler,
                   .events = events,
                   .clock = threads,
                   .stop = [&](absl::Duration longest) { return termination.WaitFor(longest); },
                   .tracer = tracer});
  return trainer.Run();
}

absl::StatusOr<BatchResult> EvaluateModelFile(const TaskSpec& task, const std::string& path) {
  UseThreads(task.threads);
  ASSIGN_OR_RETURN(const Datasets datasets, LoadDatasets(task));
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, MakeModel(task, FormOf(datasets.train)));
  ASSIGN_OR_RETURN(std::vector<std::vector<float>> parameters, ReadModelFile(path, *model));
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    model->Bind(i, parameters[i], Model::Place::kHost);
  }
  return Evaluate(*model, datasets.test);
}

}  // namespace thinwire
