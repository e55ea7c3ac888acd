#include "client/residual_file.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "client/checked_file.h"
#include "kernels/finite.h"

namespace thinwire::client {
namespace {

constexpr std::string_view kMagic = "TWRESID1";

std::span<const std::byte> AsBytes(std::string_view text) { return std::as_bytes(std::span(text)); }

void WriteShard(uint64_t value_count, const ShardResidualsView& shard, CheckedWriter& file) {
  file.Put(static_cast<uint32_t>(value_count));
  file.Put(shard.late_examples);
  file.Put(uint8_t{!shard.residual.empty()});
  file.Put(uint8_t{!shard.momentum.empty()});
  file.Write(std::as_bytes(shard.residual));
  file.Write(std::as_bytes(shard.momentum));
}

// Reads one file, piece by piece; a piece that is not as wanted is an error.
class ResidualReader {
 public:
  ResidualReader(const std::string& path, CheckedReader& file) : path_(path), file_(file) {}

  absl::Status ReadHead(const ResidualOwner& owner, const Partition& partition, Step& step) {
    if (absl::Status s = WantText("format", kMagic); !s.ok()) return s;
    if (absl::Status s = Want("job of length", static_cast<uint32_t>(owner.job.size())); !s.ok()) {
      return s;
    }
    if (absl::Status s = WantText("job", owner.job); !s.ok()) return s;
    if (absl::Status s = Want("worker", owner.worker.value); !s.ok()) return s;
    if (absl::Status s = Want("partition", partition.hash()); !s.ok()) return s;
    if (absl::Status s = file_.Get(step.value); !s.ok()) return s;
    return Want("shard count", partition.shard_count());
  }

  absl::Status ReadShard(ShardId shard, uint64_t value_count,
                         ShardResiduals<std::vector<float>>& out) {
    const std::string where = absl::StrCat("shard ", shard.value);
    absl::Status status = Want(absl::StrCat(where, ", values"), static_cast<uint32_t>(value_count));
    if (status.ok()) status = file_.Get(out.late_examples);
    uint8_t residual = 0, momentum = 0;
    if (status.ok()) status = file_.Get(residual);
    if (status.ok()) status = file_.Get(momentum);
    if (status.ok()) status = ReadFloats(where, residual, value_count, out.residual);
    if (status.ok()) status = ReadFloats(where, momentum, value_count, out.momentum);
    return status;
  }

 private:
  template <typename Number>
  absl::Status Want(const std::string& what, Number want) {
    Number got = 0;
    if (absl::Status s = file_.Get(got); !s.ok()) return s;
    if (got == want) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": want ", what, " ", want, ", got ", got));
  }

  absl::Status WantText(const std::string& what, std::string_view want) {
    std::string got(want.size(), '\0');
    if (absl::Status s = file_.Read(std::as_writable_bytes(std::span(got))); !s.ok()) return s;
    if (got == want) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": want ", what, " \"", std::string(want), "\", got \"", got, "\""));
  }

  absl::Status ReadFloats(const std::string& where, uint8_t there, uint64_t count,
                          std::vector<float>& out) {
    if (there > 1) {
      return absl::DataLossError(
          absl::StrCat(path_, ": ", where, ": want an array or none, 1 or 0, got ", there));
    }
    out.resize(there * count);
    if (absl::Status s = file_.Read(std::as_writable_bytes(std::span(out))); !s.ok()) return s;
    if (kernels::AllFinite(out)) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(path_, ": ", where, ": a value is not finite"));
  }

  const std::string& path_;
  CheckedReader& file_;
};

}  // namespace

absl::Status WriteResiduals(const std::string& path, const ResidualOwner& owner,
                            const Partition& partition, Step step,
                            std::span<const ShardResidualsView> shards) {
  CheckedWriter file(path);
  file.Write(AsBytes(kMagic));
  file.Put(static_cast<uint32_t>(owner.job.size()));
  file.Write(AsBytes(owner.job));
  file.Put(owner.worker.value);
  file.Put(partition.hash());
  file.Put(step.value);
  file.Put(partition.shard_count());
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    WriteShard(partition.value_count(ShardId{s}), shards[s], file);
  }
  return file.Commit();
}

absl::StatusOr<SavedResiduals> ReadResiduals(const std::string& path, const ResidualOwner& owner,
                                             const Partition& partition) {
  absl::StatusOr<CheckedReader> file = CheckedReader::Open(path);
  if (!file.ok()) return file.status();
  ResidualReader reader(path, *file);
  SavedResiduals saved;
  if (absl::Status s = reader.ReadHead(owner, partition, saved.step); !s.ok()) return s;
  saved.shards.resize(partition.shard_count());
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const ShardId shard{s};
    const absl::Status status =
        reader.ReadShard(shard, partition.value_count(shard), saved.shards[s]);
    if (!status.ok()) return status;
  }
  if (absl::Status s = file->Finish(); !s.ok()) return s;
  return saved;
}

}  // namespace thinwire::client
