#include "client/encode/residual_file.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "client/encode/checked_file.h"
#include "common/base/status_macros.h"
#include "kernels/finite.h"

namespace thinwire::client {
namespace {

constexpr std::string_view kMagic = "TWRESID2";

std::span<const std::byte> AsBytes(std::string_view text) { return std::as_bytes(std::span(text)); }

void WriteShard(uint64_t value_count, const ShardResidualsView& shard, CheckedWriter& file) {
  file.Put(static_cast<uint32_t>(value_count));
  file.Put(shard.late_examples);
  file.Put(uint8_t{!shard.residual.empty()});
  file.Put(uint8_t{!shard.momentum.empty()});
  file.Write(std::as_bytes(shard.residual));
  file.Write(std::as_bytes(shard.momentum));
}

// Reads a residual file, and checks that the file belongs to the given job, worker and partition.
class ResidualReader {
 public:
  ResidualReader(const std::string& path, CheckedReader& file) : path_(path), file_(file) {}

  absl::Status ReadHead(const ResidualOwner& owner, const Partition& partition,
                        ResidualPoint& point) {
    RETURN_IF_ERROR(ExpectText("format", kMagic));
    RETURN_IF_ERROR(Expect("job name of length", static_cast<uint32_t>(owner.job.size())));
    RETURN_IF_ERROR(ExpectText("job", owner.job));
    RETURN_IF_ERROR(Expect("worker", owner.worker.value));
    uint64_t hash = 0;
    RETURN_IF_ERROR(file_.Get(hash));
    if (hash != partition.hash()) return OtherPartitionError(path_, partition, hash);
    RETURN_IF_ERROR(file_.Get(point.run.value));
    RETURN_IF_ERROR(file_.Get(point.step.value));
    return Expect("shard count", partition.shard_count());
  }

  absl::Status ReadShard(ShardId shard, uint64_t value_count,
                         ShardResiduals<std::vector<float>>& out) {
    const std::string where = absl::StrCat("shard ", shard.value);
    RETURN_IF_ERROR(
        Expect(absl::StrCat(where, " value count"), static_cast<uint32_t>(value_count)));
    RETURN_IF_ERROR(file_.Get(out.late_examples));
    uint8_t residual = 0, momentum = 0;
    RETURN_IF_ERROR(file_.Get(residual));
    RETURN_IF_ERROR(file_.Get(momentum));
    RETURN_IF_ERROR(ReadFloats(where, residual, value_count, out.residual));
    return ReadFloats(where, momentum, value_count, out.momentum);
  }

 private:
  template <typename Number>
  absl::Status Expect(const std::string& what, Number expected) {
    Number got = 0;
    RETURN_IF_ERROR(file_.Get(got));
    if (got == expected) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(path_, ": not this worker's file (expected ",
                                                      what, " ", expected, ", got ", got, ")"));
  }

  absl::Status ExpectText(const std::string& what, std::string_view expected) {
    std::string got(expected.size(), '\0');
    RETURN_IF_ERROR(file_.Read(std::as_writable_bytes(std::span(got))));
    if (got == expected) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(path_, ": not this worker's file (expected ",
                                                      what, " \"", std::string(expected),
                                                      "\", got \"", got, "\")"));
  }

  absl::Status ReadFloats(const std::string& where, uint8_t present, uint64_t count,
                          std::vector<float>& out) {
    if (present > 1) {
      return absl::DataLossError(absl::StrCat(
          path_, ": ", where, ": damaged array flag (expected 0 or 1, got ", present, ")"));
    }
    out.resize(present * count);
    RETURN_IF_ERROR(file_.Read(std::as_writable_bytes(std::span(out))));
    if (kernels::AllFinite(out)) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(path_, ": ", where, ": a value is not finite"));
  }

  const std::string& path_;
  CheckedReader& file_;
};

}  // namespace

absl::Status WriteResiduals(const std::string& path, const ResidualOwner& owner,
                            const Partition& partition, const ResidualPoint& point,
                            std::span<const ShardResidualsView> shards) {
  CheckedWriter file(path);
  file.Write(AsBytes(kMagic));
  file.Put(static_cast<uint32_t>(owner.job.size()));
  file.Write(AsBytes(owner.job));
  file.Put(owner.worker.value);
  file.Put(partition.hash());
  file.Put(point.run.value);
  file.Put(point.step.value);
  file.Put(partition.shard_count());
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    WriteShard(partition.value_count(ShardId{s}), shards[s], file);
  }
  return file.Commit();
}

std::vector<ShardResidualsView> ViewsOf(
    std::span<const ShardResiduals<std::vector<float>>> shards) {
  std::vector<ShardResidualsView> views;
  for (const auto& [residual, momentum, late_examples] : shards) {
    views.push_back({.residual = residual, .momentum = momentum, .late_examples = late_examples});
  }
  return views;
}

absl::Status OtherPartitionError(const std::string& path, const Partition& partition,
                                 uint64_t got) {
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": belongs to another model, shard_size or number of servers (expected partition ",
      partition.hash(), ", got ", got,
      "): remove the file if the values that this worker has not sent may be lost"));
}

absl::StatusOr<ResidualPoint> ReadResidualPoint(const std::string& path, const ResidualOwner& owner,
                                                const Partition& partition) {
  ASSIGN_OR_RETURN(CheckedReader file, CheckedReader::Open(path));
  ResidualPoint point;
  RETURN_IF_ERROR(ResidualReader(path, file).ReadHead(owner, partition, point));
  return point;
}

absl::StatusOr<SavedResiduals> ReadResiduals(const std::string& path, const ResidualOwner& owner,
                                             const Partition& partition) {
  ASSIGN_OR_RETURN(CheckedReader file, CheckedReader::Open(path));
  ResidualReader reader(path, file);
  SavedResiduals saved;
  RETURN_IF_ERROR(reader.ReadHead(owner, partition, saved.point));
  saved.shards.resize(partition.shard_count());
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const ShardId shard{s};
    RETURN_IF_ERROR(reader.ReadShard(shard, partition.value_count(shard), saved.shards[s]));
  }
  RETURN_IF_ERROR(file.Finish());
  return saved;
}

std::vector<Step> NextSteps(std::span<const JoinReply> replies, uint32_t shard_count) {
  std::vector<Step> next(shard_count);
  for (const JoinReply& reply : replies) {
    for (const ShardState& shard : reply.shards()) {
      if (shard.shard() < shard_count) next[shard.shard()] = Step{shard.predecessor_next()};
    }
  }
  return next;
}

ResidualStart DecideResidualStart(const std::string& folder, std::span<const SavedPoint> files,
                                  std::span<const JoinReply> replies, const Partition& partition,
                                  bool after_rollback) {
  const std::vector<Step> next = NextSteps(replies, partition.shard_count());
  const Step last = *std::max_element(next.begin(), next.end());
  const std::string lost =
      last == Step{} || after_rollback
          ? ""
          : "; the residuals that an earlier process of this worker left are lost";
  ResidualStart start = {.restored = std::vector<bool>(next.size(), false)};
  if (files.empty()) {
    if (folder.empty() && lost.empty()) return start;
    start.text = absl::StrCat(folder.empty() ? "no state folder" : folder + ": no file yet", lost);
    return start;
  }
  const RunId run{replies[0].run()};
  const auto fits = [&](const SavedPoint& file, Step step) {
    return file.point.run == run && file.point.step == step;
  };
  const SavedPoint* best = &files.back();
  for (const SavedPoint& file : files) {
    if (std::ranges::any_of(next, [&](Step step) { return fits(file, step); })) best = &file;
  }
  size_t restored_count = 0;
  for (size_t s = 0; s < next.size(); ++s) {
    start.restored[s] = fits(*best, next[s]);
    if (start.restored[s]) ++restored_count;
  }
  const Step saved = best->point.step;
  start.text = absl::StrCat(best->path, ": saved before step ", saved.value);
  if (best->point.run != run) {
    absl::StrAppend(&start.text, ", not restored: from another run (expected run ",
                    absl::Hex(run.value, absl::kZeroPad16), ", got ",
                    absl::Hex(best->point.run.value, absl::kZeroPad16), ")", lost);
    return start;
  }
  start.path = best->path;
  if (restored_count == next.size()) {
    absl::StrAppend(&start.text, ", restored");
  } else if (restored_count > 0) {
    absl::StrAppend(&start.text, ", restored for ", restored_count, " of ", next.size(),
                    " shards: the worker has pushed the others since");
  } else if (last > saved) {
    absl::StrAppend(&start.text, ", not restored: the worker has pushed up to step ", last.value,
                    " since", lost);
  } else {
    absl::StrAppend(&start.text,
                    ", not restored: the servers know the worker's pushes before step ", last.value,
                    lost);
  }
  return start;
}

}  // namespace thinwire::client
