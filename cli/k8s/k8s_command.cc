#include "cli/k8s/k8s_command.h"

#include <filesystem>
#include <map>
#include <span>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/files/atomic_file.h"
#include "common/spec/job_spec.h"
#include "config/command_flags.h"
#include "config/effective.h"
#include "config/job.h"
#include "config/job_text.h"
#include "config/places.h"
#include "proto/job.pb.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire k8s --config job.textproto --name exp1 --namespace team-a --out exp1\n"
    "  thinwire k8s --config job.textproto --name exp2 --out exp2 --cert_manager --queue gpus\n"
    "  kubectl apply -k exp1/setup\n"
    "  kubectl apply -k exp1";

// The fields of the job file that the objects of Kubernetes depend on.
const std::vector<std::string_view> kFields = {"name", "servers", "workers", "data_dir",
                                               "durability"};

// Where the pods mount the claim with the data set.
constexpr char kDataDir[] = "/data";

absl::Status CheckOnClaim(const char* field, const std::string& path, const FieldPlaces& places) {
  if (path == kDataDir || path.starts_with(absl::StrCat(kDataDir, "/"))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      LineOf({field, absl::StrCat("not in the claim of the pods (expected ", kDataDir,
                                  " or a path below it, got \"", path, "\")")},
             places));
}

// Errors: AlreadyExists if the folder has files, FailedPrecondition if it cannot be read.
absl::Status CheckEmpty(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error) && !error) return absl::OkStatus();
  const bool empty = !error && std::filesystem::is_directory(folder, error) &&
                     std::filesystem::is_empty(folder, error);
  if (error)
    return absl::FailedPreconditionError(absl::StrCat("--out: ", folder, ": ", error.message()));
  if (empty) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--out: ", folder, ": exists already (expected a new or an empty folder)"));
}

absl::Status WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat(path.parent_path().string(), ": cannot be made: ", error.message()));
  }
  AtomicFile file(path.string());
  file.Write(std::as_bytes(std::span(text)));
  return file.Commit();
}

// Returns NUMBER and WORD, which gets an s unless NUMBER is 1.
std::string Counted(uint32_t number, const char* word) {
  return absl::StrCat(number, " ", word, number == 1 ? "" : "s");
}

// Returns the line that the command prints.
absl::StatusOr<std::string> Write(const K8sCommand& command) {
  RETURN_IF_ERROR(command.options.Validate());
  ASSIGN_OR_RETURN(const JobConfig config, JobOfPods(command.config_file, *command.fields));
  ASSIGN_OR_RETURN(const JobSpec job, CheckJob(config));
  RETURN_IF_ERROR(CheckEmpty(command.out));
  for (const auto& [path, text] : Manifests(job, EffectiveText(config), command.options)) {
    RETURN_IF_ERROR(WriteFile(std::filesystem::path(command.out) / path, text));
  }
  return absl::StrCat(command.out, ": job ", job.name, " in namespace ",
                      command.options.kube_namespace, ", ", Counted(job.server_count, "server"),
                      " and ", Counted(job.rule.workers, "worker"));
}

}  // namespace

CLI::App* AddK8s(CLI::App& app, K8sCommand& command) {
  CLI::App* k8s = CommandFlags(app).AddSubcommand(
      "k8s", "Writes the Kubernetes manifests of a job, for kubectl apply -k");
  CommandFlags flags(*k8s);
  flags.Add("--config", command.config_file, "The job file. The flags below replace its fields")
      .Type("FILE")
      .Environment("THINWIRE_CONFIG")
      .Required();
  flags.Add("--out", command.out, "The folder to write, which must be new or empty")
      .Type("DIR")
      .Required();
  ManifestOptions& options = command.options;
  flags
      .Add("--namespace", options.kube_namespace,
           "The namespace of Kubernetes, which must exist. Default: thinwire")
      .Type("NAMESPACE");
  flags
      .Add("--image", options.image,
           "The image of all pods. Default: localhost/thinwire:dev, for workers with --gpu_spot "
           "localhost/thinwire:dev-cuda")
      .Type("IMAGE");
  flags
      .Add("--queue", options.queue,
           "The LocalQueue of Kueue that admits the workers. Default: none")
      .Type("QUEUE");
  flags.AddSwitch("--gpu_spot", options.gpu_spot,
                  "Gives each worker a GPU of a spot machine, and keeps the servers off such "
                  "machines");
  const Flag cert_manager =
      flags.AddSwitch("--cert_manager", options.cert_manager,
                      "Adds an authority and certificates for cert-manager. Default: Secrets with "
                      "the files of thinwire certs");
  flags
      .AddSwitch("--insecure", options.insecure,
                 "Writes a job without TLS: every pod that the network policy admits can read and "
                 "change the model")
      .Excludes(cert_manager);
  flags.AllowExtras();  // CheckNoExtras() reports unknown arguments
  flags.Footer(kExamples);
  command.fields.emplace(*k8s, kFields);
  return k8s;
}

absl::StatusOr<JobConfig> JobOfPods(const std::string& file, const FieldFlags& flags) {
  ASSIGN_OR_RETURN(JobText text, ReadJobFile(file));
  RETURN_IF_ERROR(flags.Apply(text.config, text.places));
  auto* task = text.config.mutable_task();
  if (!task->has_data_dir()) task->set_data_dir(kDataDir);
  ASSIGN_OR_RETURN(const JobSpec job, CheckJob(text.config, text.places));
  if (const absl::Status names = CheckNames(job); !names.ok()) {
    return absl::InvalidArgumentError(LineOf({"name", std::string(names.message())}, text.places));
  }
  if (job.recovery.durability == Durability::kNone) {
    return absl::InvalidArgumentError(
        LineOf({"durability",
                "a replaced server pod would lose the job (expected checkpoint or log, got none)"},
               text.places));
  }
  if (job.push.adaptive.has_value()) {
    return absl::InvalidArgumentError(
        LineOf({"push",
                "needs a folder for the state of each worker, which its pod does not have "
                "(expected another codec, got adaptive)"},
               text.places));
  }
  RETURN_IF_ERROR(CheckOnClaim("data_dir", job.task.data_dir, text.places));
  if (!job.task.model_file.empty()) {
    RETURN_IF_ERROR(CheckOnClaim("model_file", job.task.model_file, text.places));
  }
  return text.config;
}

ExitCode RunK8s(const K8sCommand& command, Console& console, std::ostream& out) {
  const absl::StatusOr<std::string> line = Write(command);
  if (!line.ok()) return Fail(console, line.status(), ExitCode::kConfig);
  out << *line << std::endl;
  return ExitCode::kOk;
}

}  // namespace thinwire
