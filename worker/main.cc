// worker: the program of a worker process. It reads the job file, loads the data and the model, and
// trains with the servers. Events are written to standard output (docs/training.md), and messages
// to standard error. Exit codes: common/exit_code.h.
#include <glog/logging.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/encode/device.h"
#include "client/gpu/gpu.h"
#include "client/transport/grpc_transport.h"
#include "common/exit_code.h"
#include "common/files/atomic_file.h"
#include "common/files/crc32c.h"
#include "common/ids.h"
#include "common/memory/huge_page_arena.h"
#include "common/process_setup.h"
#include "common/spec/job_spec.h"
#include "common/status_macros.h"
#include "common/time/clock.h"
#include "common/time/thread_executor.h"
#include "common/time/trace.h"
#include "common/time/unix_clock.h"
#include "common/time/watchdog.h"
#include "common/tls/identity.h"
#include "common/version/version.h"
#include "config/command_flags.h"
#include "config/field_flags.h"
#include "config/help.h"
#include "config/job.h"
#include "config/job_text.h"
#include "config/man_page.h"
#include "config/stability.h"
#include "proto/grpc_credentials.h"
#include "proto/worker_event.pb.h"
#include "worker/batch_buffer.h"
#include "worker/client_options.h"
#include "worker/datasets/load.h"
#include "worker/events.h"
#include "worker/model_file.h"
#include "worker/model_output.h"
#include "worker/models/factory.h"
#include "worker/models/model.h"
#include "worker/sampler.h"
#include "worker/termination.h"
#include "worker/trainer.h"
#include "worker/worker_admin.h"
#include "worker/worker_summary.h"

namespace thinwire {
namespace {

// The values of this program's flags, except the flags for fields of the job file (FieldFlags).
struct Flags {
  std::string config;
  uint32_t worker = 0;
  std::string addresses;    // list of all servers' addresses, by server number
  std::string credentials;  // folder; empty: plaintext
  bool insecure = false;
  std::string state_dir;
  std::string delay;  // value of --delay; empty: the job file sets the delay
  std::string output;
  std::string keep = "last";
  std::string evaluate;     // path of a model file; not empty: the worker only evaluates this file
  std::string admin;        // empty: no admin port
  std::string tensorboard;  // folder of TensorBoard's event files; empty: none
  std::string trace;        // file of the trace; empty: none
};

// The checked settings of this worker.
struct Setup {
  JobConfig config;
  JobSpec spec;
  WorkerId worker;
  std::vector<std::string> addresses;
  Credentials credentials;
  absl::Duration delay;
  std::string state_dir;
  std::optional<ModelOutputOptions> output;
};

// Returns the artificial delay of every step, from --delay or else from the job file. Errors:
// InvalidArgument if the value of --delay is not valid.
absl::StatusOr<absl::Duration> DelayOf(const Flags& flags, const JobSpec& spec) {
  if (flags.delay.empty()) return spec.DelayOf(WorkerId{flags.worker});
  absl::Duration delay;
  if (!absl::ParseDuration(flags.delay, &delay) || delay < absl::ZeroDuration() ||
      delay > absl::Hours(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--delay: wrong value (expected a duration of at most 1h, such as 50ms, got ",
                     flags.delay, ")"));
  }
  return delay;
}

// Returns the settings of the model file. Errors: those of CheckReplaceable.
absl::StatusOr<std::optional<ModelOutputOptions>> OutputOf(const Flags& flags,
                                                           const JobSpec& spec) {
  if (flags.output.empty()) return std::nullopt;
  // Reports the error before hours of training, not after.
  const absl::Status status = CheckReplaceable(flags.output);
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat("--output: ", status.message()));
  }
  using Keep = ModelOutputOptions::Keep;
  return ModelOutputOptions{.path = flags.output,
                            .keep = flags.keep == "best" ? Keep::kBest : Keep::kLast,
                            .job = spec.name};
}

// Reads the job file, applies the flags, and checks the result. Errors: errors of the job file;
// InvalidArgument for flags that do not fit the job.
absl::StatusOr<Setup> MakeSetup(const Flags& flags, const FieldFlags& field_flags) {
  ASSIGN_OR_RETURN(JobText text, ReadJobFile(flags.config));
  RETURN_IF_ERROR(field_flags.Apply(text.config, text.places));
  ASSIGN_OR_RETURN(JobSpec spec, CheckJob(text.config, text.places));
  if (flags.worker >= spec.rule.max_workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worker: out of range (expected below ", spec.rule.max_workers,
                     ", the value of max_workers, got ", flags.worker, ")"));
  }
  if (spec.push.adaptive.has_value() && flags.state_dir.empty() && flags.evaluate.empty()) {
    return absl::InvalidArgumentError(
        "--state_dir: missing (expected a folder for the worker's state, to which push: adaptive "
        "returns, got none)");
  }
  ASSIGN_OR_RETURN(std::vector<std::string> addresses,
                   ParseAddresses(flags.addresses, spec.server_count));
  RETURN_IF_ERROR(
      CheckPlaintext("--addresses", addresses, !flags.credentials.empty(), flags.insecure));
  ASSIGN_OR_RETURN(
      Credentials credentials,
      Credentials::Load(flags.credentials, Identity{Role::kWorker, spec.name, flags.worker}));
  ASSIGN_OR_RETURN(const absl::Duration delay, DelayOf(flags, spec));
  ASSIGN_OR_RETURN(std::optional<ModelOutputOptions> output, OutputOf(flags, spec));
  // Makes the task field present even if all its fields have their defaults. Servers compare the
  // tasks of all workers and skip a worker that sends no task.
  text.config.mutable_task();
  return Setup{.config = std::move(text.config),
               .spec = std::move(spec),
               .worker = WorkerId{flags.worker},
               .addresses = std::move(addresses),
               .credentials = std::move(credentials),
               .delay = delay,
               .state_dir = flags.state_dir,
               .output = std::move(output)};
}

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

// TRACER may be null. It must outlive the calls of the transport.
absl::StatusOr<Trainer::Ending> Train(const Setup& setup, Termination& termination,
                                      EventPrinter& events, Tracer* tracer) {
  const TaskSpec& task = setup.spec.task;
  UseThreads(task.threads);
  ASSIGN_OR_RETURN(const TrainingDevice device, OpenDevice(task));
  ASSIGN_OR_RETURN(const Datasets datasets, LoadDatasets(task));
  const Dataset& examples = datasets.train;
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                   MakeModel(task, examples.example_shape, examples.class_count));
  Sampler sampler({.example_count = examples.example_count(),
                   .worker = setup.worker,
                   .workers = setup.spec.rule.workers,
                   .batch_size = task.batch_size,
                   .batch_count = static_cast<uint32_t>(task.step_passes()),
                   .seed = task.seed,
                   .epochs = task.epochs});
  ClientOptions options =
      MakeClientOptions(setup.spec, {.worker = setup.worker,
                                     .planned_examples = examples.example_count() * task.epochs,
                                     .planned_steps = sampler.EpochBegin(task.epochs).value,
                                     .state_dir = setup.state_dir});
  options.config = setup.config;
  options.tracer = tracer;
  options.data_hash = ContentHash(datasets);
  ASSIGN_OR_RETURN(options.model_file_hash, FileHash(task.model_file));
  Threads threads;
  GrpcTransport transport(setup.addresses, setup.credentials);
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
  Trainer trainer({.worker = setup.worker,
                   .epochs = task.epochs,
                   .device = device.name,
                   .delay = setup.delay,
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

// Tells systemd that the worker is ready when it has joined, and why it waits.
void NotifySystemd(const WorkerEvent& event) {
  if (event.has_joined()) sd_notify(/*unset_environment=*/0, "READY=1\nSTATUS=training");
  if (event.has_waiting()) {
    const std::string& text = event.waiting().text();
    sd_notify(/*unset_environment=*/0,
              absl::StrCat("STATUS=", text.empty() ? "training" : text).c_str());
  }
}

// Reports ERROR as an event and in the log, and returns the exit code of the process.
ExitCode Fail(const absl::Status& error, EventPrinter& events) {
  WorkerEvent event;
  event.mutable_error()->set_message(std::string(error.message()));
  events.Write(std::move(event));
  LOG(ERROR) << error.message();
  return ExitCodeOfWorker(error);
}

// Returns the test result of the model in the file PATH.
absl::StatusOr<BatchResult> EvaluateModelFile(const TaskSpec& task, const std::string& path) {
  UseThreads(task.threads);
  ASSIGN_OR_RETURN(const Datasets datasets, LoadDatasets(task));
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                   MakeModel(task, datasets.train.example_shape, datasets.train.class_count));
  ASSIGN_OR_RETURN(std::vector<std::vector<float>> parameters, ReadModelFile(path, *model));
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    model->Bind(i, parameters[i], Model::Place::kHost);
  }
  return Evaluate(*model, datasets.test);
}

// Evaluates the model file and reports the result as a `done` event.
ExitCode RunEvaluate(const Flags& flags, const FieldFlags& field_flags) {
  const absl::StatusOr<JobSpec> spec = [&]() -> absl::StatusOr<JobSpec> {
    ASSIGN_OR_RETURN(JobText text, ReadJobFile(flags.config));
    RETURN_IF_ERROR(field_flags.Apply(text.config, text.places));
    return CheckJob(text.config, text.places);
  }();
  if (!spec.ok()) {
    std::cerr << "worker: " << spec.status().message() << std::endl;
    return ExitCode::kConfig;
  }
  EventPrinter events(std::cout, WorkerId{flags.worker});
  const absl::StatusOr<BatchResult> result = EvaluateModelFile(spec->task, flags.evaluate);
  if (!result.ok()) return Fail(result.status(), events);
  WorkerEvent event;
  event.mutable_done()->set_evaluator(true);
  event.mutable_done()->set_final_test_accuracy(result->accuracy());
  event.mutable_done()->set_final_test_loss(result->mean_loss());
  events.Write(std::move(event));
  return ExitCode::kOk;
}

// The records of a run that the flags ask for.
struct Records {
  std::unique_ptr<WorkerAdmin> admin;
  std::unique_ptr<WorkerSummary> summary;
  std::optional<Tracer> tracer;
};

// Fills in RECORDS. The clocks must outlive them; the time of UNIX_CLOCK counts from the Unix
// epoch. Errors: those of WorkerAdmin::Start, WorkerSummary::Create and CheckReplaceable.
absl::Status StartRecords(const Flags& flags, const Setup& setup, Clock& clock, Clock& unix_clock,
                          Records& records) {
  if (!flags.admin.empty()) {
    ASSIGN_OR_RETURN(records.admin,
                     WorkerAdmin::Start(flags.admin, setup.spec.name, setup.worker, clock));
    LOG(INFO) << "admin " << records.admin->address();
  }
  if (!flags.tensorboard.empty()) {
    auto summary = WorkerSummary::Create(flags.tensorboard, unix_clock);
    if (!summary.ok()) {
      return absl::Status(summary.status().code(),
                          absl::StrCat("--tensorboard: ", summary.status().message()));
    }
    records.summary = *std::move(summary);
  }
  if (!flags.trace.empty()) {
    // Reports the error before hours of training, not after.
    if (const absl::Status status = CheckReplaceable(flags.trace); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat("--trace: ", status.message()));
    }
    records.tracer.emplace(absl::StrCat("worker ", setup.worker.value), unix_clock);
  }
  return absl::OkStatus();
}

ExitCode Run(const Flags& flags, const FieldFlags& field_flags, Termination& termination) {
  if (!flags.evaluate.empty()) return RunEvaluate(flags, field_flags);
  const absl::StatusOr<Setup> setup = MakeSetup(flags, field_flags);
  if (!setup.ok()) {
    std::cerr << "worker: " << setup.status().message() << std::endl;
    return ExitCode::kConfig;
  }
  for (const std::string& warning : setup->credentials.warnings()) LOG(WARNING) << warning;
  if (flags.insecure) {
    LOG(WARNING) << "INSECURE: calling " << flags.addresses
                 << " without credentials. Everybody on the way can read and change the model";
  }
  SteadyClock clock;
  UnixClock unix_clock;
  Records records;
  if (const absl::Status started = StartRecords(flags, *setup, clock, unix_clock, records);
      !started.ok()) {
    std::cerr << "worker: " << started.message() << std::endl;
    return ExitCodeOf(started);
  }
  EventPrinter events(std::cout, setup->worker, [&records](const WorkerEvent& event) {
    NotifySystemd(event);
    if (records.admin != nullptr) records.admin->Add(event);
    if (records.summary != nullptr) records.summary->Add(event);
  });
  Tracer* const tracer = records.tracer.has_value() ? &*records.tracer : nullptr;
  const absl::StatusOr<Trainer::Ending> ending = Train(*setup, termination, events, tracer);
  if (tracer != nullptr) {
    const absl::Status written = tracer->Write(flags.trace);
    if (!written.ok()) LOG(ERROR) << "--trace: " << written.message();
  }
  if (!ending.ok()) return Fail(ending.status(), events);
  switch (*ending) {
    case Trainer::Ending::kFinished:
    case Trainer::Ending::kRetired:
      return ExitCode::kOk;
    case Trainer::Ending::kStopped:
      return ExitCode::kPreempted;
    case Trainer::Ending::kDiverged:
      return ExitCode::kDiverged;
    case Trainer::Ending::kNotWritten:
      return ExitCode::kIo;
  }
  return ExitCode::kSoftware;
}

void AddFlags(CommandFlags command, Flags& flags) {
  command.Add("--config", flags.config, "The job file (proto/job.proto in text format)")
      .Type("FILE")
      .Environment("THINWIRE_CONFIG")
      .Required();
  command
      .Add("--worker", flags.worker,
           "The number of this worker, from 0 to workers - 1; more after thinwire scale. No two "
           "processes share one. Default: 0")
      .Type("NUMBER")
      .Environment("THINWIRE_WORKER");
  command
      .Add("--addresses", flags.addresses,
           "host:port of every server, in the order of their numbers, separated by commas. "
           "Required, except with --evaluate")
      .Type("LIST")
      .Environment("THINWIRE_ADDRESSES");
  command
      .Add("--credentials", flags.credentials,
           "The folder with ca.pem, cert.pem and key.pem (thinwire certs), for servers with "
           "mutual TLS")
      .Type("DIR")
      .Environment("THINWIRE_CREDENTIALS");
  command
      .AddSwitch(
          "--insecure", flags.insecure,
          "Calls servers on other machines without credentials: everybody on the way can read "
          "and change the model")
      .Environment("THINWIRE_INSECURE");
  command
      .Add(
          "--state_dir", flags.state_dir,
          "The folder in which the worker keeps its state (residuals, loss scale, buffers, slots), "
          "in DIR/worker-N: before each step of which the servers make a checkpoint, and when "
          "SIGTERM ends it. The next process of this worker continues from it, and so does "
          "this process if the servers continue from an earlier step. Without it, the state "
          "ends with the process")
      .Type("DIR")
      .Environment("THINWIRE_STATE_DIR");
  command
      .Add("--delay", flags.delay,
           "Added to every step, such as 50ms, to imitate a slow machine. Default: the "
           "straggler of the job file")
      .Type("DURATION")
      .Environment("THINWIRE_DELAY");
  const Flag output =
      command
          .Add("--output", flags.output,
               "The file to which the evaluating worker writes the trained model, as safetensors "
               "with the names of PyTorch's state_dict. Without it, no model is written")
          .Type("FILE")
          .Environment("THINWIRE_OUTPUT");
  command
      .Add("--keep", flags.keep,
           "The parameters that --output gets: the final ones, or those with the highest test "
           "accuracy at the end of an epoch. Default: last")
      .Type("last|best")
      .OneOf({"last", "best"})
      .Needs(output)
      .Environment("THINWIRE_KEEP");
  command
      .Add("--evaluate", flags.evaluate,
           "Reports the test accuracy of this model file, a file of --output, and trains "
           "nothing")
      .Type("FILE");
  command
      .Add("--admin", flags.admin,
           "The host:port of the status page, metrics and health checks, in plaintext. Port "
           "0 takes a free port, which the log names. Default: none")
      .Type("ADDRESS")
      .Environment("THINWIRE_ADMIN");
  command
      .Add("--tensorboard", flags.tensorboard,
           "The folder for TensorBoard's event files of this worker. Default: none")
      .Type("DIR")
      .Environment("THINWIRE_TENSORBOARD");
  command
      .Add("--trace", flags.trace,
           "The file for the trace of this worker, written at the end (thinwire trace). "
           "Default: none")
      .Type("FILE")
      .Environment("THINWIRE_TRACE");
}

// The fields of the job file that may differ between workers. Each field has a command-line flag.
const std::vector<std::string_view> kFieldsPerProcess = {
    "device", "threads", "data_dir", "model_file", "precision", "silence_seconds"};

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  thinwire::FillStandardFiles();
  thinwire::IgnoreBrokenPipes();
  thinwire::Termination termination;
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  thinwire::Program program("thinwire worker: computes gradients and pushes them to the servers.");
  CLI::App& app = program.app();
  thinwire::CommandFlags command(app);
  command.Footer(std::string("Example:\n") +
                 "  worker --config job.textproto --worker 3 --addresses a:7000,b:7000\n"
                 "  worker --config job.textproto --addresses a:7000 --output m.safetensors\n"
                 "  worker --config job.textproto --evaluate m.safetensors\n" +
                 thinwire::ExitCodesHelp());
  thinwire::SetHelpFormat(app, thinwire::TerminalColumns(STDOUT_FILENO));
  thinwire::Flags flags;
  thinwire::AddFlags(command, flags);
  const thinwire::FieldFlags field_flags(app, thinwire::kFieldsPerProcess);
  thinwire::AddManFlag(app, "thinwire-worker");
  command.AddVersion(thinwire::VersionText("thinwire worker") + "\n" + thinwire::TorchVersion());
  const auto missing = [&flags] {
    return flags.evaluate.empty() && flags.addresses.empty() ? "--addresses" : "";
  };
  if (const std::optional<int> code = program.Parse(argc, argv, missing); code.has_value())
    return *code;
  return static_cast<int>(thinwire::Run(flags, field_flags, termination));
}
