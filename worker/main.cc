// worker: one worker daemon of thinwire. Reads a WorkerConfig, loads the data and the model, trains
// with its servers. Events go to standard output (docs/training.md), everything else to standard
// error.
//
//   exit code   0 done   64 usage   69 a server is gone   75 left early after a signal   78
//   configuration or data
#include <glog/logging.h>
#include <grpcpp/security/credentials.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/encode/device.h"
#include "client/gpu/open_gpu.h"
#include "client/transport/grpc_transport.h"
#include "common/clock.h"
#include "common/huge_page_arena.h"
#include "common/ids.h"
#include "proto/config.pb.h"
#include "proto/config_text.h"
#include "proto/loss_scaling.h"
#include "proto/worker_event.pb.h"
#include "worker/client_options.h"
#include "worker/datasets/load.h"
#include "worker/events.h"
#include "worker/loss_scale.h"
#include "worker/models/factory.h"
#include "worker/models/model.h"
#include "worker/sampler.h"
#include "worker/termination.h"
#include "worker/trainer.h"

namespace thinwire {
namespace {

constexpr int kUsage = 64;
constexpr int kUnavailable = 69;
constexpr int kSoftware = 70;
constexpr int kStopped = 75;
constexpr int kConfiguration = 78;

int ExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return kUnavailable;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kDataLoss:
      return kConfiguration;
    default:
      return kSoftware;
  }
}

std::optional<LossScaleFile> LossScaleFileOf(const WorkerConfig& config) {
  if (config.residual_file().empty()) return std::nullopt;
  return LossScaleFile{.path = config.residual_file() + ".loss_scale",
                       .job = config.job(),
                       .worker = WorkerId{config.worker()}};
}

// Where a worker computes.
struct TrainingDevice {
  std::unique_ptr<const Device> gpu;  // null: the client's tensors lie in the host's memory
  std::string name;                   // for a person
};

// Errors: a device that was asked for and is not there, and what is missing.
absl::StatusOr<TrainingDevice> OpenDevice(const Task& task) {
  const absl::StatusOr<std::optional<int>> number = CudaDeviceOf(task);
  if (!number.ok()) return number.status();
  if (!number->has_value()) return TrainingDevice{.name = "cpu"};
  absl::StatusOr<std::unique_ptr<const Device>> gpu = OpenGpu(**number);
  if (gpu.ok()) {
    const std::string name = (*gpu)->name();
    return TrainingDevice{.gpu = *std::move(gpu), .name = name};
  }
  const std::string why(gpu.status().message());
  if (task.device() != "auto") {
    return absl::FailedPreconditionError(
        absl::StrCat("device: want ", task.device(), ", but ", why));
  }
  LOG(WARNING) << "gradients and parameters are copied through the host: " << why;
  return TrainingDevice{.name = absl::StrCat("cuda:", **number, ", through the host")};
}

absl::StatusOr<Trainer::Ending> Train(const WorkerConfig& config, const Termination& termination,
                                      EventLog& events) {
  const Task& task = config.task();
  UseThreads(task.threads());
  const absl::StatusOr<TrainingDevice> device = OpenDevice(task);
  if (!device.ok()) return device.status();
  const absl::StatusOr<Datasets> datasets = LoadDatasets(task);
  if (!datasets.ok()) return datasets.status();
  const Dataset& examples = datasets->train;
  const absl::StatusOr<std::unique_ptr<Model>> model =
      MakeModel(task, examples.example_shape, examples.class_count);
  if (!model.ok()) return model.status();
  Sampler sampler({.example_count = examples.example_count(),
                   .worker = WorkerId{config.worker()},
                   .workers = config.workers(),
                   .batch_size = task.batch_size(),
                   .seed = task.seed()});
  absl::StatusOr<ClientOptions> options =
      MakeClientOptions(config, {.examples = examples.example_count() * task.epochs(),
                                 .steps = sampler.steps_per_epoch() * task.epochs()});
  if (!options.ok()) return options.status();
  GrpcTransport transport({config.servers().begin(), config.servers().end()},
                          grpc::InsecureChannelCredentials());
  HugePageArena arena;
  options->memory = &arena;
  const absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Make(*std::move(options), (*model)->tensors(), transport, device->gpu.get());
  if (!client.ok()) return client.status();
  SteadyClock clock;
  Trainer trainer({.worker = WorkerId{config.worker()},
                   .epochs = task.epochs(),
                   .device = device->name,
                   .delay = absl::Seconds(config.delay_seconds()),
                   .loss_scaling = LossScalingOf(task),
                   .loss_scale_file = LossScaleFileOf(config)},
                  {.client = **client,
                   .model = **model,
                   .train = examples,
                   .test = datasets->test,
                   .sampler = sampler,
                   .events = events,
                   .clock = clock,
                   .stop = [&termination] { return termination.requested(); }});
  return trainer.Run();
}

int Run(const std::string& config_path, const Termination& termination) {
  const absl::StatusOr<WorkerConfig> config = ReadConfig<WorkerConfig>(config_path);
  if (!config.ok()) {
    std::cerr << config.status().message() << std::endl;
    return kConfiguration;
  }
  EventLog events(std::cout, WorkerId{config->worker()});
  const absl::StatusOr<Trainer::Ending> ending = Train(*config, termination, events);
  if (!ending.ok()) {
    WorkerEvent error;
    error.mutable_error()->set_message(std::string(ending.status().message()));
    events.Write(error);
    LOG(ERROR) << ending.status().message();
    return ExitCode(ending.status());
  }
  return *ending == Trainer::Ending::kStopped ? kStopped : 0;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  const thinwire::Termination termination;
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  CLI::App app("A worker daemon of thinwire: computes gradients, pushes them to its servers.");
  std::string config_path;
  app.add_option("--config", config_path, "A WorkerConfig in protobuf's text format")->required();
  app.set_version_flag("--version", "thinwire worker, " + thinwire::TorchVersion());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : thinwire::kUsage;
  }
  return thinwire::Run(config_path, termination);
}
