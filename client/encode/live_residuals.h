// LiveResiduals: the residuals and momenta of a running worker, in a shared mapping of the file
// `live` in its state folder. They are not written there: the file is their memory, whose pages
// belong to the kernel and survive kill -9 of the process. The next process of the worker restores
// each shard that was whole and belongs to the worker's next step.
//
//   page 0   head     magic, worker, partition, run, generation, start of the machine, CRC-32C
//   then     records  64 bytes per shard: sequence, step, places of the arrays, late examples
//   then     arrays   on page boundaries
//
// A shard changes in three steps. A process that is killed between the first and the third leaves an
// odd sequence, and the shard is lost:
//
//   Change   the sequence becomes odd
//   the encoder changes residual and momentum
//   Keep     the record gets the step and the arrays; the sequence becomes even
//
// The step is the first one whose pushes the residual does not contain. A shard with step t + 1 may
// have been encoded and not pushed; the servers then still expect step t, and the shard is lost.
//
// The kernel writes pages to the disk in any order, so a machine that loses its power may leave a
// mixture of old and new values. The head therefore names the start of the machine, and the file of
// an earlier start is not used.
//
// Every block of the file is allocated before it is used, so a full disk never ends the process
// with SIGBUS: an array without room in the file comes from another memory and is lost with the
// process.
#ifndef THINWIRE_CLIENT_ENCODE_LIVE_RESIDUALS_H_
#define THINWIRE_CLIENT_ENCODE_LIVE_RESIDUALS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/residual_file.h"
#include "common/base/ids.h"
#include "common/model/partition.h"

namespace thinwire::client {

// One shard of a file that a process has left. It is lost if it was being changed, if the file had
// no room for it, or if a value is not finite.
struct LeftShard {
  bool lost = false;
  Step step;
  ShardResiduals<std::vector<float>> values;
};

struct LeftResiduals {
  RunId run;
  Generation generation;
  std::vector<LeftShard> shards;  // by shard number
};

// Reads the file at PATH. Errors: NotFound if there is no file; FailedPrecondition if it belongs to
// another worker or partition, or if the machine has been started since; DataLoss if it is damaged.
absl::StatusOr<LeftResiduals> ReadLeftResiduals(const std::string& path, WorkerId worker,
                                                const Partition& partition);

struct LiveRecord;  // the state of a shard in the file

// The memory of the arrays of a HostShardEncoder. Not thread-safe.
class LiveResiduals final : public std::pmr::memory_resource {
 public:
  // Creates the file PATH.new; the file at PATH stays as it is. Arrays without room in the file come
  // from FALLBACK, which must outlive this object. Errors: errors of the file system, with the path.
  static absl::StatusOr<std::unique_ptr<LiveResiduals>> Create(
      const std::string& path, WorkerId worker, const Partition& partition,
      std::pmr::memory_resource* fallback = std::pmr::get_default_resource());
  ~LiveResiduals() override;
  LiveResiduals(const LiveResiduals&) = delete;
  LiveResiduals& operator=(const LiveResiduals&) = delete;

  // Marks all shards as being changed. They will belong to RUN and GENERATION.
  void Begin(RunId run, Generation generation);
  // Renames PATH.new to PATH. Does nothing if this was done. Errors: errors of the file system;
  // Aborted if another process has replaced PATH.new.
  absl::Status Publish();

  // Call before the values of SHARD change. May be called again before Keep.
  void Change(ShardId shard);
  // Records that VALUES, arrays of this memory, are those of SHARD before STEP. Later changes
  // require Change.
  void Keep(ShardId shard, Step step, const ShardResidualsView& values);
  // As above, with the step of the last Keep.
  void Keep(ShardId shard, const ShardResidualsView& values);
  // Records that all shards that are not being changed are those before STEP.
  void BeginStep(Step step);

  // Returns whether an array came from the other memory because the file had no room.
  bool full() const { return full_; }

 private:
  LiveResiduals(std::string path, int file, std::byte* base, size_t length, WorkerId worker,
                const Partition& partition, std::pmr::memory_resource* fallback);

  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* array, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  // Returns whether PATH.new is still this object's file.
  bool OwnsNew() const;
  LiveRecord& record(ShardId shard);
  bool Contains(const void* array) const { return array >= base_ && array < base_ + length_; }
  // Returns the position of an array in the file, 0 for no array; nullopt if it is elsewhere.
  std::optional<uint64_t> PlaceOf(std::span<const float> array) const;

  const std::string path_;
  const int file_;
  std::byte* const base_;
  const size_t length_;
  const WorkerId worker_;
  const Partition& partition_;
  std::pmr::memory_resource* const fallback_;
  std::map<size_t, size_t> free_;  // position of each free range -> its length
  bool published_ = false;
  bool full_ = false;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_LIVE_RESIDUALS_H_
