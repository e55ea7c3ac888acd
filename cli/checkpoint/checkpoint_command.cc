#include "cli/checkpoint/checkpoint_command.h"

#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/checkpoint/bucket.h"
#include "cli/checkpoint/fetch.h"
#include "cli/checkpoint/mirror.h"
#include "cli/checkpoint/state_dir.h"
#include "common/base/status_macros.h"
#include "common/files/atomic_file.h"
#include "common/files/safetensors.h"
#include "common/model/partition.h"
#include "config/command_flags.h"
#include "config/job.h"
#include "config/job_text.h"
#include "config/recipes.h"
#include "proto/checkpoint.pb.h"
#include "server/durable/checkpoint.h"
#include "server/durable/reshard.h"
#include "server/durable/saved_job.h"
#include "server/durable/state_folder.h"
#include "server/durable/test_result.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire checkpoint list state\n"
    "  thinwire checkpoint verify state\n"
    "  thinwire checkpoint export state --out model.safetensors\n"
    "  thinwire checkpoint restore state --step 400\n"
    "  thinwire checkpoint now --addresses a:7000,b:7000\n"
    "  thinwire checkpoint restore --addresses a:7000,b:7000 --step 400\n"
    "  thinwire checkpoint import --config job.textproto --from model.safetensors --state_dir "
    "state\n"
    "  thinwire checkpoint mirror s3://bucket/run7 --state_dir state --every 300\n"
    "  thinwire checkpoint fetch s3://bucket/run7 --state_dir state";

ExitCode Report(const absl::Status& status, std::ostream& err) {
  if (!status.ok()) err << status.message() << std::endl;
  // A full disk.
  if (absl::IsResourceExhausted(status)) return ExitCode::kIo;
  return ExitCodeOf(status);
}

// Returns whether SERVER is one of the job in DIR that has no shards. With durability: log, such a
// server has no checkpoint.
bool HasNoShards(Files& files, const std::string& dir, ServerId server) {
  const std::string first = StateFolderPath(dir, ServerId{0});
  const absl::StatusOr<std::string> name = NewestCheckpoint(files, first);
  if (!name.ok()) return false;
  const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(files, first, *name);
  if (!manifest.ok()) return false;
  const absl::StatusOr<Partition> partition = PartitionOfJoin(manifest->join());
  return partition.ok() && server.value < partition->server_count() &&
         partition->ShardsOf(server).empty();
}

// Calls SHOW(folder) with the folder of each server in DIR. Reports all errors, and returns the
// exit code of the last one.
template <typename Show>
ExitCode ForEachServer(Files& files, const std::string& dir, std::ostream& err, const Show& show) {
  const absl::StatusOr<std::vector<ServerId>> servers = ServersIn(files, dir);
  if (!servers.ok()) return Report(servers.status(), err);
  ExitCode code = ExitCode::kOk;
  for (const ServerId server : *servers) {
    const absl::Status status = show(StateFolderPath(dir, server));
    if (absl::IsNotFound(status) && HasNoShards(files, dir, server)) continue;
    if (!status.ok()) code = Report(status, err);
  }
  return code;
}

// The smallest and the largest of some numbers.
struct Range {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  uint64_t most = 0;

  void Add(uint64_t number) {
    least = std::min(least, number);
    most = std::max(most, number);
  }
  std::string Text() const {
    if (least > most) return "-";
    return least == most ? absl::StrCat(least) : absl::StrCat(least, "-", most);
  }
};

constexpr char kTableHead[] =
    "server  checkpoint                       shards  versions     steps        bytes         "
    "healthy  newest  test\n";

std::string TableLine(const CheckpointManifest& manifest, const std::string& name, bool newest) {
  Range versions, steps;
  uint64_t bytes = 0;
  for (const CheckpointManifest::Shard& shard : manifest.shards()) {
    versions.Add(shard.version());
    steps.Add(shard.frontier());
    bytes += shard.file_bytes();
  }
  const std::optional<TestResult> test = TestResultOf(manifest.test());
  return absl::StrFormat(
      "%-6u  %-31s  %-6d  %-11s  %-11s  %-12u  %-7s  %-6s  %s\n", manifest.server(), name,
      manifest.shards_size(), versions.Text(), steps.Text(), bytes,
      manifest.healthy() ? "yes" : "no", newest ? "yes" : "no",
      test.has_value() ? absl::StrCat(test->Text(), " at step ", test->step.value) : "-");
}

absl::Status PrintTable(Files& files, const std::string& folder, std::ostream& out) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, folder));
  const absl::StatusOr<std::string> newest = NewestCheckpoint(files, folder);
  absl::Status status = newest.status();
  for (const std::string& name : names) {
    const auto manifest = ReadManifest(files, folder, name);
    if (!manifest.ok()) {
      status = manifest.status();
      continue;
    }
    out << TableLine(*manifest, name, newest.ok() && *newest == name);
  }
  out << std::flush;
  return status;
}

std::string ShardLine(const CheckpointManifest::Shard& shard) {
  std::string line =
      absl::StrCat("shard ", shard.shard(), ": ", shard.values(), " values, version ",
                   shard.version(), ", step ", shard.frontier());
  if (shard.has_published()) {
    absl::StrAppend(&line, ", published version ", shard.published().version());
  }
  if (shard.saturated()) absl::StrAppend(&line, ", saturated");
  return line + "\n";
}

// Returns one line per worker: its process and the steps that it must push next to the shards.
std::string WorkerLines(const CheckpointManifest& manifest) {
  std::map<uint32_t, Range> next;
  for (const CheckpointManifest::Shard& shard : manifest.shards()) {
    for (int i = 0; i < shard.workers_size(); ++i) {
      if (shard.workers(i).incarnation() != 0) next[i].Add(shard.workers(i).next());
    }
  }
  std::string lines;
  for (const CheckpointManifest::Member& member : manifest.members()) {
    absl::StrAppend(&lines, "worker ", member.worker(), ": process ", member.incarnation(),
                    member.left() ? ", left" : "", ", next step ", next[member.worker()].Text(),
                    "\n");
  }
  return lines;
}

absl::Status Inspect(Files& files, const std::string& folder, std::ostream& out) {
  ASSIGN_OR_RETURN(const std::string name, NewestCheckpoint(files, folder));
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(files, folder, name));
  out << absl::StrFormat("%s/%s: server %u of job %s, run %016x, generation %u, %s\n", folder, name,
                         manifest.server(), manifest.join().job(), manifest.run(),
                         manifest.generation(), manifest.healthy() ? "healthy" : "not healthy");
  for (const Tensor& tensor : manifest.join().tensors()) {
    out << absl::StrCat("tensor ", tensor.name(), " [", absl::StrJoin(tensor.shape(), ", "), "]\n");
  }
  for (const CheckpointManifest::Shard& shard : manifest.shards()) out << ShardLine(shard);
  out << WorkerLines(manifest) << std::flush;
  return absl::OkStatus();
}

absl::Status Verify(Files& files, const std::string& folder, std::ostream& out, std::ostream& err) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, folder));
  absl::Status status = NewestCheckpoint(files, folder).status();
  for (const std::string& name : names) {
    const absl::StatusOr<Checkpoint> checkpoint = ReadNamedCheckpoint(files, folder, name);
    if (checkpoint.ok()) {
      out << absl::StrCat(folder, "/", name, ": ok (", checkpoint->shards.size(), " shards)")
          << std::endl;
    } else if (status.ok()) {
      status = checkpoint.status();
    } else if (status != checkpoint.status()) {
      Report(checkpoint.status(), err);
    }
  }
  return status;
}

absl::StatusOr<Partition> PartitionOf(const JoinRequest& join, const std::string& folder) {
  absl::StatusOr<Partition> partition = PartitionOfJoin(join);
  if (partition.ok()) return partition;
  return absl::DataLossError(absl::StrCat(folder, ": ", partition.status().message()));
}

// The whole model, assembled from the shards of all servers.
struct Model {
  std::vector<TensorShape> shapes;
  std::vector<std::vector<std::byte>> tensors;  // fp32
  Range steps, versions;                        // of the shards
  bool averaged = false;                        // TENSORS are the averages of the parameters
};

// Copies the averages of the checkpoint of one server to MODEL, or the masters if there are no
// averages or MASTERS is true. Errors: DataLoss if the checkpoint has not exactly the shards of the
// server.
absl::Status AddServer(const Checkpoint& checkpoint, const Partition& partition, ServerId server,
                       const std::string& folder, bool masters, Model& model) {
  const std::vector<ShardId> expected = partition.ShardsOf(server);
  const auto& shards = checkpoint.shards;
  if (!std::ranges::equal(shards, expected, {}, &SavedShard::shard)) {
    return absl::DataLossError(absl::StrCat(folder, ": other shards than the job's (expected ",
                                            expected.size(), " shards, got ", shards.size(), ")"));
  }
  for (const SavedShard& saved : shards) {
    const StoreSnapshot& store = saved.state.store;
    const bool averaged = !masters && !store.updater.average.empty();
    const ByteChain& values = averaged ? store.updater.average : store.masters;
    const uint64_t bytes = partition.value_count(saved.shard) * sizeof(float);
    if (values.size() != bytes) {
      return absl::DataLossError(absl::StrCat(folder, ": shard ", saved.shard.value,
                                              ": wrong size (expected ", bytes, " bytes, got ",
                                              values.size(), ")"));
    }
    size_t at = 0;
    for (const Segment& segment : partition.segments(saved.shard)) {
      const size_t length = segment.count * sizeof(float);
      const auto tensor = std::span(model.tensors[segment.tensor]);
      values.Sub(at, length).CopyTo(tensor.subspan(segment.offset * sizeof(float), length));
      at += length;
    }
    model.steps.Add(saved.state.frontier.value);
    model.versions.Add(store.version.value);
    model.averaged |= averaged;
  }
  return absl::OkStatus();
}

absl::StatusOr<Model> ReadModel(Files& files, const std::string& dir,
                                const ExportOptions& options) {
  const auto step = options.step.has_value() ? std::optional(Step{*options.step}) : std::nullopt;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ChooseCheckpoints(files, dir, step));
  ASSIGN_OR_RETURN(const CheckpointManifest first,
                   ReadManifest(files, StateFolderPath(dir, ServerId{0}), names[0]));
  ASSIGN_OR_RETURN(const Partition partition,
                   PartitionOf(first.join(), StateFolderPath(dir, ServerId{0})));
  Model model = {.shapes = partition.tensors()};
  for (const TensorShape& shape : model.shapes) {
    model.tensors.emplace_back(shape.value_count() * sizeof(float));
  }
  for (uint32_t server = 0; server < names.size(); ++server) {
    if (names[server].empty()) continue;
    const std::string folder = StateFolderPath(dir, ServerId{server});
    ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                     ReadNamedCheckpoint(files, folder, names[server]));
    if (checkpoint.run.run.value != first.run() || checkpoint.server != ServerId{server}) {
      return absl::DataLossError(absl::StrFormat(
          "%s: another server's checkpoint (expected server %u of run %016x, got "
          "server %u of run %016x)",
          folder, server, first.run(), checkpoint.server.value, checkpoint.run.run.value));
    }
    RETURN_IF_ERROR(
        AddServer(checkpoint, partition, ServerId{server}, folder, options.masters, model));
  }
  return model;
}

absl::Status WriteModel(const Model& model, const std::string& file) {
  std::vector<SafetensorsTensor> tensors;
  for (size_t i = 0; i < model.shapes.size(); ++i) {
    tensors.push_back(
        {model.shapes[i].name, "F32", model.shapes[i].shape, model.tensors[i].size()});
  }
  const std::string header = SafetensorsHeader(tensors, {{"format", "pt"}});
  AtomicFile output(file);
  output.Write(std::as_bytes(std::span(header)));
  for (const std::vector<std::byte>& tensor : model.tensors) output.Write(tensor);
  return output.Commit();
}

// Mirrors the state of COMMAND once, or again and again until a stop signal. The times are multiples
// of the interval, so that the mirrors of all machines take checkpoints of the same time.
absl::Status Mirror(const CheckpointCommand& command, Bucket& bucket, std::ostream& out,
                    std::ostream& err) {
  for (;;) {
    const absl::StatusOr<std::string> line = MirrorState(command.dir, bucket, err);
    if (line.ok()) out << *line << std::endl;
    if (command.every == 0 || bucket.signal() != 0) return line.status();
    // The cause may be over next time, and no machine should mirror less than the others.
    if (!line.ok()) Report(line.status(), err);
    const absl::Duration every = absl::Seconds(command.every);
    const absl::Time next =
        absl::UnixEpoch() + (absl::Floor(absl::Now() - absl::UnixEpoch(), every) + every);
    for (absl::Time now; (now = absl::Now()) < next;) {
      RETURN_IF_ERROR(bucket.WaitFor(next - now));
    }
  }
}

// Runs `mirror` and `fetch`.
ExitCode RunBucketCommand(const CheckpointCommand& command, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<std::unique_ptr<Signals>> signals = Signals::Block();
  if (!signals.ok()) return Report(signals.status(), err);
  absl::StatusOr<Bucket> bucket = Bucket::Make(command.url, **signals);
  if (!bucket.ok()) return Report(bucket.status(), err);
  absl::Status status;
  if (IsParsed(*command.mirror)) {
    status = Mirror(command, *bucket, out, err);
  } else {
    const auto server =
        command.server.has_value() ? std::optional(ServerId{*command.server}) : std::nullopt;
    const absl::StatusOr<std::string> line = FetchState(command.dir, server, *bucket, err);
    if (line.ok()) out << *line << std::endl;
    status = line.status();
  }
  const ExitCode code = Report(status, err);
  if (bucket->signal() == 0) return code;
  return bucket->signal() == SIGINT ? ExitCode::kInterrupted : ExitCode::kPreempted;
}

}  // namespace

CLI::App* AddCheckpoint(CLI::App& app, CheckpointCommand& command) {
  CLI::App* checkpoint = CommandFlags(app).AddSubcommand(
      "checkpoint",
      "Makes, shows, checks, exports, imports, restores, mirrors and fetches the checkpoints of a "
      "job");
  CommandFlags flags(*checkpoint);
  flags.RequireSubcommand();
  flags.Footer(kExamples);
  const auto add = [&](const char* name, const char* help) {
    CLI::App* added = flags.AddSubcommand(name, help);
    CommandFlags(*added).Add("DIR", command.dir, "The state directory of the job").Required();
    return added;
  };
  command.now = flags.AddSubcommand(
      "now", "Makes a checkpoint of all servers of a running job, and waits for it");
  CommandFlags now(*command.now);
  AddCheckpointCalls(now, command.now_calls).Required();
  command.list = add("list", "Lists all checkpoints");
  command.inspect = add("inspect", "Shows the contents of each server's newest checkpoint");
  command.verify = add("verify", "Reads and checks every file of all checkpoints");
  command.export_model = add("export", "Writes the parameters of checkpoints to a file");
  CommandFlags exported(*command.export_model);
  exported.Add("--out", command.out, "The safetensors file to write").Type("FILE").Required();
  exported
      .Add("--step", command.exported.step,
           "The step of the checkpoints, as for restore. By default the newest ones")
      .Type("STEP");
  exported.AddSwitch("--masters", command.exported.masters,
                     "Writes the parameters that training goes on from, not their averages");
  command.import_state =
      flags.AddSubcommand("import", "Makes a state directory, from which train --resume goes on");
  CommandFlags imported(*command.import_state);
  imported.Add("--config", command.config_file, "The job file").Type("FILE").Required();
  imported
      .Add("--from", command.source,
           "A state directory of the job with any number of servers, or a model file of "
           "train --output or checkpoint export")
      .Type("SOURCE")
      .Required();
  imported.Add("--state_dir", command.dir, "The folder to create. It must be empty or absent")
      .Type("DIR")
      .Required();
  command.restore = flags.AddSubcommand(
      "restore",
      "Goes back to older checkpoints, of a stopped job in DIR or of a running job at --addresses");
  CommandFlags restore(*command.restore);
  restore.Add(
      "DIR", command.dir,
      "The state directory of a stopped job, from which train --resume goes on. The present state "
      "is moved aside");
  AddCheckpointCalls(restore, command.restore_calls);
  restore
      .Add("--step", command.step,
           "The step to go back to, of which all servers have a checkpoint. In ssp, async "
           "and with durability: log, each server goes back to its newest checkpoint of at "
           "most this step")
      .Type("STEP")
      .Required();
  command.mirror = flags.AddSubcommand(
      "mirror", "Copies the checkpoints of a state directory to a bucket, with the program rclone");
  CommandFlags mirror(*command.mirror);
  constexpr char kUrl[] =
      "The bucket: s3://BUCKET/PATH, NAME:PATH of rclone's configuration, or /PATH";
  mirror.Add("URL", command.url, kUrl).Required();
  mirror.Add("--state_dir", command.dir, "The state directory of the servers of this machine")
      .Type("DIR")
      .Required();
  mirror
      .Add("--every", command.every,
           "Goes on until a signal, and copies at every multiple of this time, so that the mirrors "
           "of all machines copy at the same time. Default: copies once")
      .Type("SECONDS")
      .Between(1.0, 86400.0);
  command.fetch = flags.AddSubcommand(
      "fetch", "Makes a state directory from the checkpoints in a bucket, and checks them");
  CommandFlags fetch(*command.fetch);
  fetch.Add("URL", command.url, kUrl).Required();
  fetch.Add("--state_dir", command.dir, "The folder, which must not have the state of a job")
      .Type("DIR")
      .Required();
  fetch
      .Add("--server", command.server,
           "Fetches only the folder of this server. Default: those of all servers")
      .Type("NUMBER");
  return checkpoint;
}

ExitCode RunCheckpoint(const CheckpointCommand& command, std::ostream& out, std::ostream& err) {
  PosixFiles files;
  const std::string& dir = command.dir;
  if (IsParsed(*command.list)) return PrintCheckpoints(files, dir, out, err);
  if (IsParsed(*command.inspect)) return InspectCheckpoints(files, dir, out, err);
  if (IsParsed(*command.verify)) return VerifyCheckpoints(files, dir, out, err);
  if (IsParsed(*command.export_model)) {
    return ExportCheckpoint(files, dir, command.out, command.exported, out, err);
  }
  if (IsParsed(*command.mirror) || IsParsed(*command.fetch)) {
    return RunBucketCommand(command, out, err);
  }
  if (IsParsed(*command.now)) return SaveCheckpointNow(command.now_calls, out, err);
  if (IsParsed(*command.restore)) {
    const bool has_addresses = !command.restore_calls.servers.addresses.empty();
    // A state directory is not meant for the job that THINWIRE_ADDRESSES names.
    const bool is_running =
        has_addresses && (dir.empty() || IsOnCommandLine(*command.restore, "--addresses"));
    if (is_running != dir.empty()) {
      err << "restore: which job (expected the state directory DIR of a stopped job, or "
             "--addresses "
             "of a running one, got "
          << (is_running ? "both" : "neither") << ")" << std::endl;
      return ExitCode::kUsage;
    }
    if (is_running) return RestoreRunning(command.restore_calls, command.step, out, err);
    return RestoreCheckpoint(files, dir, command.step, out, err);
  }
  return ImportCheckpoint(files, command.config_file, command.source, dir, out, err);
}

ExitCode PrintCheckpoints(Files& files, const std::string& dir, std::ostream& out,
                          std::ostream& err) {
  bool first = true;
  return ForEachServer(files, dir, err, [&](const std::string& folder) {
    if (std::exchange(first, false)) out << kTableHead;
    return PrintTable(files, folder, out);
  });
}

ExitCode InspectCheckpoints(Files& files, const std::string& dir, std::ostream& out,
                            std::ostream& err) {
  return ForEachServer(files, dir, err,
                       [&](const std::string& folder) { return Inspect(files, folder, out); });
}

ExitCode VerifyCheckpoints(Files& files, const std::string& dir, std::ostream& out,
                           std::ostream& err) {
  return ForEachServer(files, dir, err,
                       [&](const std::string& folder) { return Verify(files, folder, out, err); });
}

ExitCode ExportCheckpoint(Files& files, const std::string& dir, const std::string& file,
                          const ExportOptions& options, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Model> model = ReadModel(files, dir, options);
  if (!model.ok()) return Report(model.status(), err);
  // At the end of a run, the frontiers may differ by the order in which the workers left.
  if (model->steps.least < model->steps.most && model->versions.least < model->versions.most) {
    err << "warning: the shards have different steps (" << model->steps.Text()
        << "), so the parameters are not those of one step" << std::endl;
  }
  if (const absl::Status status = WriteModel(*model, file); !status.ok()) {
    return Report(status, err);
  }
  out << file << ": " << model->tensors.size() << " tensors, step " << model->steps.Text()
      << (model->averaged ? ", averages of the parameters" : "") << std::endl;
  return ExitCode::kOk;
}

ExitCode ImportCheckpoint(Files& files, const std::string& config_file, const std::string& source,
                          const std::string& dir, std::ostream& out, std::ostream& err) {
  absl::StatusOr<JobText> text = ReadJobFile(config_file);
  if (!text.ok()) return Report(text.status(), err);
  ExpandRecipe(text->config, text->places);
  const auto job = CheckJob(text->config, text->places);
  if (!job.ok()) return Report(job.status(), err);
  const absl::StatusOr<std::string> line = ImportState(files, source, dir, text->config);
  if (!line.ok()) return Report(line.status(), err);
  out << *line << std::endl;
  return ExitCode::kOk;
}

ExitCode RestoreCheckpoint(Files& files, const std::string& dir, uint64_t step, std::ostream& out,
                           std::ostream& err) {
  const absl::StatusOr<RestoredJob> restored = RestoreSavedJob(files, dir, Step{step});
  if (!restored.ok()) return Report(restored.status(), err);
  Range steps;
  steps.Add(restored->least_step.value);
  steps.Add(restored->largest_step.value);
  out << dir << ": went back to step " << steps.Text() << "; the old folders are " << dir
      << "/server-N.before-" << restored->replacement.number << std::endl;
  return ExitCode::kOk;
}

}  // namespace thinwire
