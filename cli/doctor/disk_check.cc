#include "cli/doctor/disk_check.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"
#include "common/model/partition.h"
#include "server/durable/checkpoint.h"
#include "server/durable/reshard.h"
#include "server/durable/state_folder.h"

namespace thinwire {
namespace {

// 1 Gbit/s.
constexpr double kWireBytesPerSecond = 125e6;

// Returns the bytes of one worker's gradient. A worker that chooses its codec may push fp32.
uint64_t GradientBytes(const PushSpec& push, uint64_t value_count) {
  const CodecSpec spec = push.choose.has_value() ? CodecSpec() : push.codec;
  const absl::StatusOr<std::unique_ptr<const Codec>> codec = MakeCodec(spec);
  return codec.ok() ? (*codec)->MaxPayloadBytes(value_count) : value_count * sizeof(float);
}

}  // namespace

std::optional<uint64_t> ValueCountIn(Files& files, const std::string& dir) {
  const std::string folder = StateFolderPath(dir, ServerId{0});
  const absl::StatusOr<std::string> name = NewestCheckpoint(files, folder);
  if (!name.ok()) return std::nullopt;
  const auto manifest = ReadManifest(files, folder, *name);
  if (!manifest.ok()) return std::nullopt;
  const absl::StatusOr<Partition> partition = PartitionOfJoin(manifest->join());
  return partition.ok() ? std::optional(partition->value_count()) : std::nullopt;
}

std::optional<std::string> DiskWarning(const JobSpec& job, const std::string& dir,
                                       const DiskSpeed& speed,
                                       std::optional<uint64_t> value_count) {
  if (speed.bytes_per_second >= kWireBytesPerSecond) return std::nullopt;
  const double megabytes = speed.bytes_per_second / 1e6;
  if (!value_count.has_value()) {
    return absl::StrFormat(
        "durability: log writes every push; %s writes %.0f MB/s, less than the %.0f MB/s of a wire "
        "of 1 Gbit/s",
        dir, megabytes, kWireBytesPerSecond / 1e6);
  }
  const double bytes = static_cast<double>(GradientBytes(job.push, *value_count)) *
                       job.rule.workers / job.server_count;
  return absl::StrFormat(
      "durability: log writes %.3g MB per step on each server; %s writes %.0f MB/s: at least %.2g "
      "s "
      "per step (1 Gbit/s would take %.2g s)",
      bytes / 1e6, dir, megabytes, bytes / speed.bytes_per_second, bytes / kWireBytesPerSecond);
}

absl::StatusOr<DiskSpeed> MeasureStateDisk(const std::string& dir, Files& files, Clock& clock) {
  const bool absent = absl::IsNotFound(files.List(dir).status());
  return MeasureDisk(files, absent ? ParentFolder(dir) : dir, clock);
}

absl::StatusOr<std::optional<std::string>> CheckDisk(const JobSpec& job, const std::string& dir,
                                                     Files& files, Clock& clock) {
  if (job.recovery.durability != Durability::kLog) return std::nullopt;
  ASSIGN_OR_RETURN(const DiskSpeed speed, MeasureStateDisk(dir, files, clock));
  return DiskWarning(job, dir, speed, ValueCountIn(files, dir));
}

}  // namespace thinwire
