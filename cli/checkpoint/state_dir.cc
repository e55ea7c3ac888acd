#include "cli/checkpoint/state_dir.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/files/atomic_file.h"
#include "common/files/safetensors.h"
#include "common/model/partition.h"
#include "common/spec/place_tensors.h"
#include "common/text/quoted.h"
#include "common/tls/worker_token.h"
#include "config/job.h"
#include "config/job_difference.h"
#include "config/job_text.h"
#include "proto/join_tensors.h"
#include "server/durable/checkpoint.h"
#include "server/durable/fresh_job.h"
#include "server/durable/job_replacement.h"
#include "server/durable/reshard.h"
#include "server/durable/saved_job.h"
#include "server/durable/state_folder.h"

namespace thinwire {
namespace {

// The numbers of training examples of the built-in datasets.
constexpr uint64_t kFashionMnistExamples = 60000;
constexpr uint64_t kCifar10Examples = 50000;

absl::Status WriteJobFile(const std::string& dir, const JobConfig& config) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  AtomicFile file(absl::StrCat(dir, "/", kJobFile));
  file.Write(std::as_bytes(std::span(text)));
  return file.Commit();
}

// Creates the folder DIR, or checks that it is empty. PLACE is the flag of DIR.
absl::Status MakeEmptyFolder(const std::string& place, const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directory(dir, error);
  const bool empty = !error && std::filesystem::is_empty(dir, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(place, ": ", dir, ": ", error.message()));
  }
  if (empty) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(place, ": ", dir, " is not empty (expected an empty folder)"));
}

// Returns the step of JOB, or the range of its shards' steps: "steps 4 to 6".
std::string StepText(const SavedJob& job) {
  if (job.least_step >= job.largest_step) return absl::StrCat("step ", job.largest_step.value);
  return absl::StrCat("steps ", job.least_step.value, " to ", job.largest_step.value);
}

// Checks that JOIN, the first Join of the job in DIR, belongs to the job of CONFIG. Changes its
// number of servers and its shard size to those of CONFIG.
absl::Status FitJoin(const std::string& dir, const JobConfig& config, JoinRequest& join) {
  if (join.job() != config.name()) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir, ": holds the state of another job (expected ", Quoted(config.name()),
                     ", got ", Quoted(join.job()), ")"));
  }
  RETURN_IF_ERROR(SetPartition(join, config.servers(), config.compression().shard_size()));
  if (!join.has_config()) return absl::OkStatus();
  const auto difference = JobDifference(config, join.config(), Compared::kAllButTask);
  if (!difference.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(dir, ": the saved job has another configuration: ", *difference));
}

// Reads the job in DIR and returns the checkpoints of its servers, converted to CONFIG. SAVED gets
// the job as it was read.
absl::StatusOr<std::vector<Checkpoint>> Converted(Files& files, const std::string& dir,
                                                  const JobConfig& config, SavedJob& saved) {
  ASSIGN_OR_RETURN(saved, ReadSavedJob(files, dir));
  JoinRequest join = saved.servers[0].run.join;
  RETURN_IF_ERROR(FitJoin(dir, config, join));
  auto made = Reshard(saved.servers, config.servers(), config.compression().shard_size());
  if (made.ok()) return made;
  return absl::Status(made.status().code(), absl::StrCat(dir, ": ", made.status().message()));
}

// Returns the number of training examples of TASK.
absl::StatusOr<uint64_t> TrainingExamples(Files& files, const Task& task) {
  uint64_t count =
      task.dataset() == Task::Dataset::cifar10 ? kCifar10Examples : kFashionMnistExamples;
  if (task.dataset() == Task::Dataset::safetensors) {
    const std::string path = task.data_dir() + "/train.safetensors";
    ASSIGN_OR_RETURN(const ByteChain bytes, files.Read(path));
    std::vector<std::byte> unused;
    const std::span<const std::byte> all = bytes.Contiguous(unused);
    ASSIGN_OR_RETURN(
        const SafetensorsIndex index,
        ParseSafetensors({reinterpret_cast<const uint8_t*>(all.data()), all.size()}, path));
    const auto x = index.find("x");
    if (x == index.end() || x->second.shape.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": no tensor x (expected the examples)"));
    }
    count = static_cast<uint64_t>(x->second.shape[0]);
  }
  return task.train_examples() == 0 ? count : std::min(count, task.train_examples());
}

// Returns whether a tensor of a PyTorch model is a buffer of a batch normalization, which only
// workers have.
bool IsBuffer(const std::string& name) {
  return absl::EndsWith(name, "running_mean") || absl::EndsWith(name, "running_var") ||
         absl::EndsWith(name, "num_batches_tracked");
}

// The parameters of a model file, in the order of the model.
struct FileModel {
  std::vector<std::pair<std::string, SafetensorsEntry>> entries;
  std::vector<std::vector<float>> values;
};

absl::StatusOr<FileModel> ReadParameters(const ByteChain& file, const std::string& path) {
  std::vector<std::byte> unused;
  const std::span<const std::byte> all = file.Contiguous(unused);
  absl::StatusOr<SafetensorsIndex> index =
      ParseSafetensors({reinterpret_cast<const uint8_t*>(all.data()), all.size()}, path);
  if (!index.ok()) return absl::InvalidArgumentError(index.status().message());
  FileModel model;
  for (const auto& [name, entry] : *index) {
    if (!IsBuffer(name)) model.entries.emplace_back(name, entry);
  }
  if (model.entries.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no parameters"));
  }
  // Model files have the parameters in the order of the model.
  std::ranges::sort(model.entries, {}, [](const auto& named) { return named.second.bytes.data(); });
  for (const auto& [name, entry] : model.entries) {
    if (entry.dtype != "F32") {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor ", Quoted(name), ": wrong type (expected F32, got ", entry.dtype, ")"));
    }
    std::vector<float>& values = model.values.emplace_back(entry.bytes.size() / sizeof(float));
    std::memcpy(values.data(), entry.bytes.data(), entry.bytes.size());
  }
  return model;
}

RunId NewRun() {
  std::random_device random;
  const uint64_t run = (static_cast<uint64_t>(random()) << 32) + random();
  return RunId{std::max<uint64_t>(run, 1)};
}

absl::StatusOr<std::vector<Checkpoint>> FromModelFile(Files& files, const std::string& path,
                                                      const JobConfig& config) {
  ASSIGN_OR_RETURN(const JobSpec spec, CheckJob(config));
  ASSIGN_OR_RETURN(const ByteChain file, files.Read(path));
  ASSIGN_OR_RETURN(const FileModel model, ReadParameters(file, path));
  BeginRecord run = {.run = NewRun(), .generation = Generation{1}};
  ASSIGN_OR_RETURN(run.token_key, DrawTokenKey());
  JoinRequest& join = run.join;
  join.set_job(config.name());
  join.set_servers(1);
  *join.mutable_config() = config;
  std::vector<TensorShape> shapes;
  for (const auto& [name, entry] : model.entries) {
    shapes.push_back({.name = name, .shape = {entry.shape.begin(), entry.shape.end()}});
  }
  RETURN_IF_ERROR(PlaceTensors(spec.AllGroups(), shapes));
  SetTensors(shapes, join);
  ASSIGN_OR_RETURN(const uint64_t examples, TrainingExamples(files, config.task()));
  join.set_planned_examples(examples * config.task().epochs());
  RETURN_IF_ERROR(SetPartition(join, config.servers(), config.compression().shard_size()));
  std::vector<std::span<const float>> tensors(model.values.begin(), model.values.end());
  return FreshJob(spec, run, tensors);
}

// Returns whether a server of JOB may have saved something in DIR. A log exists from the start of a
// server on.
bool HasSavedState(Files& files, const std::string& dir, const JobConfig& job) {
  if (job.recovery().durability() == Recovery::Durability::log) return true;
  for (uint32_t s = 0; s < job.servers(); ++s) {
    const auto newest = NewestCheckpoint(files, StateFolderPath(dir, ServerId{s}));
    if (!absl::IsNotFound(newest.status())) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<ServerId>> ServersIn(Files& files, const std::string& dir) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(dir));
  std::vector<ServerId> servers;
  for (const std::string& name : names) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(absl::StripPrefix(name, "server-"), &number)) continue;
    if (name == absl::StrCat("server-", number)) servers.push_back(ServerId{number});
  }
  std::ranges::sort(servers);
  if (servers.empty()) {
    return absl::NotFoundError(absl::StrCat(dir, ": no state directory (expected server-0)"));
  }
  return servers;
}

std::string ServersText(size_t count) {
  return absl::StrCat(count, count == 1 ? " server" : " servers");
}

bool KeepsState(const JobConfig& config) {
  return config.recovery().durability() != Recovery::Durability::none;
}

absl::Status PrepareStateDir(const std::string& dir, bool resume, const JobConfig& config) {
  if (dir.empty()) {
    if (!resume) return absl::OkStatus();
    return absl::InvalidArgumentError("--resume: only valid with --state_dir (got none)");
  }
  if (!KeepsState(config)) {
    return absl::InvalidArgumentError(
        "--state_dir: only valid with durability: checkpoint or log (got durability: none)");
  }
  const std::string job_file = absl::StrCat(dir, "/", kJobFile);
  std::error_code error;
  if (std::filesystem::exists(job_file, error)) {
    ASSIGN_OR_RETURN(const JobText saved, ReadJobFile(job_file));
    if (!resume) {
      return absl::FailedPreconditionError(
          absl::StrCat("--state_dir: holds a run of job ", saved.config.name(),
                       " (expected an empty folder, or --resume to go on)"));
    }
    if (saved.config.name() == config.name()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("--state_dir: holds a run of another job (expected ", config.name(), ", got ",
                     saved.config.name(), ")"));
  }
  if (resume) {
    return absl::FailedPreconditionError(
        absl::StrCat("--resume: no run in ", dir, " (expected the --state_dir of an earlier run)"));
  }
  RETURN_IF_ERROR(MakeEmptyFolder("--state_dir", dir));
  return WriteJobFile(dir, config);
}

absl::StatusOr<std::string> FitState(Files& files, const std::string& dir,
                                     const JobConfig& config) {
  RETURN_IF_ERROR(FinishReplacement(files, dir));
  ASSIGN_OR_RETURN(const JobText text, ReadJobFile(absl::StrCat(dir, "/", kJobFile)));
  const uint64_t shard_size = config.compression().shard_size();
  const std::string first = StateFolderPath(dir, ServerId{0});
  const absl::StatusOr<std::string> newest = NewestCheckpoint(files, first);
  if (absl::IsNotFound(newest.status())) {
    if (text.config.servers() == config.servers() &&
        text.config.compression().shard_size() == shard_size) {
      return "";
    }
    if (HasSavedState(files, dir, text.config)) {
      return absl::FailedPreconditionError(absl::StrCat(
          first, ": no checkpoint to convert; resume the run with servers: ", text.config.servers(),
          " and shard_size: ", text.config.compression().shard_size(),
          ", and stop it when thinwire checkpoint list shows one"));
    }
    RETURN_IF_ERROR(WriteJobFile(dir, config));
    return absl::StrCat("the run had not saved anything, so it begins with ",
                        ServersText(config.servers()));
  }
  RETURN_IF_ERROR(newest.status());
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(files, first, *newest));
  JoinRequest join = manifest.join();
  RETURN_IF_ERROR(SetPartition(join, config.servers(), shard_size));
  if (join.partition_hash() == manifest.join().partition_hash()) return "";
  SavedJob saved;
  ASSIGN_OR_RETURN(const std::vector<Checkpoint> servers, Converted(files, dir, config, saved));
  ASSIGN_OR_RETURN(const Replacement replacement, ReplaceSavedJob(files, dir, servers));
  RETURN_IF_ERROR(WriteJobFile(dir, config));
  return absl::StrCat("converted the state of ", ServersText(saved.servers.size()), " to ",
                      ServersText(servers.size()), " at ", StepText(saved),
                      "; the old folders are ", dir, "/server-N.before-", replacement.number);
}

absl::StatusOr<std::string> ImportState(Files& files, const std::string& source,
                                        const std::string& dir, const JobConfig& config) {
  if (!KeepsState(config)) {
    return absl::InvalidArgumentError(
        "durability: import needs a job that keeps its state (expected checkpoint or log, got "
        "none)");
  }
  std::error_code error;
  if (!std::filesystem::exists(source, error)) {
    return absl::NotFoundError(absl::StrCat("--from: ", source, ": no such file or folder"));
  }
  const bool is_folder = std::filesystem::is_directory(source, error);
  SavedJob saved;
  auto servers =
      is_folder ? Converted(files, source, config, saved) : FromModelFile(files, source, config);
  RETURN_IF_ERROR(servers.status());
  RETURN_IF_ERROR(MakeEmptyFolder("--state_dir", dir));
  RETURN_IF_ERROR(files.SyncFolder(ParentFolder(dir)));
  RETURN_IF_ERROR(ReplaceSavedJob(files, dir, *servers).status());
  RETURN_IF_ERROR(WriteJobFile(dir, config));
  return absl::StrCat(dir, ": ", ServersText(servers->size()), " at ",
                      is_folder ? StepText(saved) : "step 0");
}

}  // namespace thinwire
