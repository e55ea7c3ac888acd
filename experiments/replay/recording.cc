#include "experiments/replay/recording.h"

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "config/job.h"
#include "server/durable/event_log.h"
#include "server/durable/log_record.h"
#include "server/durable/state_folder.h"
#include "server/shards/convert.h"

namespace thinwire::lab {
namespace {

// The first records of a log concern no worker.
constexpr uint32_t kUnknownWorkerCount = std::numeric_limits<uint32_t>::max();

// Reads the log in FOLDER from its first record and calls APPLY for each record.
absl::Status ReadLog(Files& files, const std::string& folder,
                     const std::function<absl::Status(const ByteChain&)>& apply) {
  RETURN_IF_ERROR(files.List(folder).status());  // Lock would create a file in a missing folder
  ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock, files.Lock(folder + "/LOCK"));
  ASSIGN_OR_RETURN(const LogSequence next,
                   ReplayLog(files, folder, 1,
                             [&](LogSequence, const ByteChain& record) { return apply(record); }));
  if (next == 1) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": no recorded event (expected a run with durability: log)"));
  }
  return absl::OkStatus();
}

// The job that the first worker's Join describes.
absl::StatusOr<Recording> Begin(const BeginRecord& begin) {
  if (!begin.join.has_config()) {
    return absl::FailedPreconditionError(
        "the recorded run has no job file (expected a run of `thinwire train`)");
  }
  ASSIGN_OR_RETURN(JobSpec job, CheckJob(begin.join.config()));
  ASSIGN_OR_RETURN(Partition partition, PartitionOf(begin.join, job.server_count));
  const uint32_t shard_count = partition.shard_count();
  return Recording{.config = begin.join.config(),
                   .job = std::move(job),
                   .partition = std::move(partition),
                   .generation = begin.generation,
                   .planned_examples = begin.join.planned_examples(),
                   .events = std::vector<std::vector<Event>>(shard_count)};
}

}  // namespace

absl::StatusOr<Recording> ReadRecording(Files& files, const std::string& state_dir) {
  std::optional<Recording> recording;
  std::optional<RunId> run;
  const auto add = [&](const ByteChain& bytes) -> absl::Status {
    // Only the records of shards need the two arguments, and they follow the record of the run.
    const auto value_count = [&](ShardId shard) -> std::optional<size_t> {
      if (!recording.has_value() || shard.value >= recording->events.size()) return std::nullopt;
      return recording->partition.value_count(shard);
    };
    const uint32_t worker_count =
        recording.has_value() ? recording->job.rule.max_workers : kUnknownWorkerCount;
    ASSIGN_OR_RETURN(LogRecord record, DecodeRecord(bytes, worker_count, value_count));
    if (const auto* begin = std::get_if<BeginRecord>(&record)) {
      if (run.value_or(begin->run) != begin->run) {
        return absl::FailedPreconditionError("the logs hold several runs");
      }
      run = begin->run;
      if (recording.has_value()) return absl::OkStatus();
      ASSIGN_OR_RETURN(recording, Begin(*begin));
    } else if (auto* event = std::get_if<ShardRecord>(&record)) {
      recording->events[event->shard.value].push_back(std::move(event->event));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ReadLog(files, StateFolderPath(state_dir, ServerId{0}), add));
  for (uint32_t s = 1; s < recording->job.server_count; ++s) {
    RETURN_IF_ERROR(ReadLog(files, StateFolderPath(state_dir, ServerId{s}), add));
  }
  return *std::move(recording);
}

}  // namespace thinwire::lab
