#include "client/encode/live_residuals.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/files/crc32c.h"
#include "kernels/finite.h"

namespace thinwire::client {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are written in the machine's byte order");

constexpr size_t kPage = 4096;
constexpr char kMagic[8] = {'T', 'W', 'L', 'I', 'V', 'E', '0', '1'};

struct Head {
  char magic[8] = {};
  uint64_t partition = 0;
  uint64_t run = 0;
  uint64_t generation = 0;
  uint32_t worker = 0;
  uint32_t shard_count = 0;
  char machine_start[40] = {};
  uint32_t crc = 0;  // of all bytes before

  uint32_t ComputeCrc() const {
    return Crc32c(std::as_bytes(std::span(this, 1)).first(offsetof(Head, crc)));
  }
};

constexpr size_t kRecordBytes = 64;

size_t RoundUp(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

size_t ArraysBegin(const Partition& partition) {
  return kPage + RoundUp(partition.shard_count() * kRecordBytes);
}

absl::Status ErrorOf(const std::string& path, std::string_view problem) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": ", std::string(problem)));
}

// Returns a text that differs after each start of the machine.
std::string MachineStart() {
  std::string text(36, '\0');
  std::FILE* const file = std::fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file == nullptr) return "";
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

absl::Status NotThisWorkers(const std::string& path, std::string_view what, uint64_t expected,
                            uint64_t got) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": not this worker's file (expected ",
                                                    std::string(what), " ", expected, ", got ", got,
                                                    ")"));
}

absl::Status CheckHead(const std::string& path, const Head& head, WorkerId worker,
                       const Partition& partition) {
  if (std::memcmp(head.magic, kMagic, sizeof(kMagic)) != 0 || head.crc != head.ComputeCrc()) {
    return absl::DataLossError(absl::StrCat(path, ": damaged head"));
  }
  if (head.worker != worker.value) return NotThisWorkers(path, "worker", worker.value, head.worker);
  if (head.partition != partition.hash()) {
    return OtherPartitionError(path, partition, head.partition);
  }
  if (head.shard_count != partition.shard_count()) {
    return NotThisWorkers(path, "shard count", partition.shard_count(), head.shard_count);
  }
  const std::string start = MachineStart();
  if (start.empty() || std::string_view(head.machine_start, start.size()) != start) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": the machine was started again, so its values may be mixed"));
  }
  return absl::OkStatus();
}

// Reads COUNT bytes at POSITION. Returns whether the file has them.
bool ReadAt(int file, uint64_t position, std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        pread(file, out.data() + done, out.size() - done, static_cast<off_t>(position + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

// The state of a shard. Only one process changes it.
struct LiveRecord {
  uint64_t sequence = 0;  // 0: never used; odd: being changed
  uint64_t step = 0;
  uint64_t residual = 0;  // the position of the array in the file; 0: all values are 0
  uint64_t momentum = 0;
  uint32_t late_examples = 0;
  uint32_t unused[7] = {};

  bool whole() const { return sequence != 0 && sequence % 2 == 0; }
  // Writes the sequence after all earlier writes and before all later ones. A process that is
  // killed has made a prefix of its writes, so the order of the instructions suffices.
  void SetSequence(uint64_t value) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::atomic_ref(sequence).store(value, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
};

absl::StatusOr<std::unique_ptr<LiveResiduals>> LiveResiduals::Create(
    const std::string& path, WorkerId worker, const Partition& partition,
    std::pmr::memory_resource* fallback) {
  static_assert(sizeof(LiveRecord) == kRecordBytes);
  const std::string created = path + ".new";
  // Each shard has a residual and a momentum, and a resized array needs room beside the old one.
  size_t length = ArraysBegin(partition);
  const size_t fixed = length;
  size_t largest = 0;
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const size_t bytes = RoundUp(partition.value_count(ShardId{s}) * sizeof(float));
    length += 2 * bytes;
    largest = std::max(largest, bytes);
  }
  length += largest;
  unlink(created.c_str());
  const int file = open(created.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return ErrorOf(created, "cannot create");
  absl::Cleanup remove = [&] {
    unlink(created.c_str());
    close(file);
  };
  if (ftruncate(file, static_cast<off_t>(length)) != 0) return ErrorOf(created, "cannot extend");
  errno = posix_fallocate(file, 0, static_cast<off_t>(fixed));
  if (errno != 0) return ErrorOf(created, "no room");
  void* const base = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (base == MAP_FAILED) return ErrorOf(created, "cannot map");
  std::move(remove).Cancel();
  return std::unique_ptr<LiveResiduals>(new LiveResiduals(path, file, static_cast<std::byte*>(base),
                                                          length, worker, partition, fallback));
}

LiveResiduals::LiveResiduals(std::string path, int file, std::byte* base, size_t length,
                             WorkerId worker, const Partition& partition,
                             std::pmr::memory_resource* fallback)
    : path_(std::move(path)),
      file_(file),
      base_(base),
      length_(length),
      worker_(worker),
      partition_(partition),
      fallback_(fallback) {
  const size_t begin = ArraysBegin(partition);
  free_.emplace(begin, length - begin);
}

LiveResiduals::~LiveResiduals() {
  if (!published_ && OwnsNew()) unlink((path_ + ".new").c_str());
  munmap(base_, length_);
  close(file_);
}

LiveRecord& LiveResiduals::record(ShardId shard) {
  return *std::launder(reinterpret_cast<LiveRecord*>(base_ + kPage + shard.value * kRecordBytes));
}

void LiveResiduals::Begin(RunId run, Generation generation) {
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) Change(ShardId{s});
  Head head = {.partition = partition_.hash(),
               .run = run.value,
               .generation = generation.value,
               .worker = worker_.value,
               .shard_count = partition_.shard_count()};
  std::memcpy(head.magic, kMagic, sizeof(kMagic));
  MachineStart().copy(head.machine_start, sizeof(head.machine_start));
  head.crc = head.ComputeCrc();
  std::memcpy(base_, &head, sizeof(head));
}

bool LiveResiduals::OwnsNew() const {
  struct stat own, named;
  return fstat(file_, &own) == 0 && lstat((path_ + ".new").c_str(), &named) == 0 &&
         own.st_ino == named.st_ino && own.st_dev == named.st_dev;
}

absl::Status LiveResiduals::Publish() {
  if (published_) return absl::OkStatus();
  // Another process of the worker, which is about to be refused, may have replaced the file.
  if (!OwnsNew()) {
    return absl::AbortedError(absl::StrCat(path_, ".new: another process has replaced it"));
  }
  if (std::rename((path_ + ".new").c_str(), path_.c_str()) != 0) {
    return ErrorOf(path_, "cannot be replaced");
  }
  published_ = true;
  return absl::OkStatus();
}

void LiveResiduals::Change(ShardId shard) {
  LiveRecord& r = record(shard);
  if (r.sequence % 2 == 0) r.SetSequence(r.sequence + 1);
}

void LiveResiduals::Keep(ShardId shard, Step step, const ShardResidualsView& values) {
  Change(shard);
  record(shard).step = step.value;
  Keep(shard, values);
}

void LiveResiduals::Keep(ShardId shard, const ShardResidualsView& values) {
  const std::optional<uint64_t> residual = PlaceOf(values.residual);
  const std::optional<uint64_t> momentum = PlaceOf(values.momentum);
  if (!residual.has_value() || !momentum.has_value()) return;  // lost with the process
  Change(shard);
  LiveRecord& r = record(shard);
  r.residual = *residual;
  r.momentum = *momentum;
  r.late_examples = values.late_examples;
  r.SetSequence(r.sequence + 1);
}

void LiveResiduals::BeginStep(Step step) {
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    LiveRecord& r = record(ShardId{s});
    // One write of 8 bytes.
    if (r.whole()) r.step = step.value;
  }
}

std::optional<uint64_t> LiveResiduals::PlaceOf(std::span<const float> array) const {
  if (array.empty()) return 0;
  if (!Contains(array.data())) return std::nullopt;
  return reinterpret_cast<const std::byte*>(array.data()) - base_;
}

void* LiveResiduals::do_allocate(size_t bytes, size_t alignment) {
  const size_t rounded = RoundUp(bytes);
  const auto range =
      std::ranges::find_if(free_, [rounded](const auto& free) { return free.second >= rounded; });
  const bool fits = alignment <= kPage && range != free_.end();
  if (!fits ||
      posix_fallocate(file_, static_cast<off_t>(range->first), static_cast<off_t>(rounded)) != 0) {
    if (!full_) {
      LOG(WARNING) << path_ << ": no room; if this process is killed, the residuals of some shards "
                   << "are lost";
    }
    full_ = true;
    return fallback_->allocate(bytes, alignment);
  }
  const auto [position, length] = *range;
  free_.erase(range);
  if (length > rounded) free_.emplace(position + rounded, length - rounded);
  return base_ + position;
}

void LiveResiduals::do_deallocate(void* array, size_t bytes, size_t alignment) {
  if (!Contains(array)) return fallback_->deallocate(array, bytes, alignment);
  auto range = free_.emplace(static_cast<std::byte*>(array) - base_, RoundUp(bytes)).first;
  if (const auto next = std::next(range);
      next != free_.end() && range->first + range->second == next->first) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range == free_.begin()) return;
  const auto before = std::prev(range);
  if (before->first + before->second != range->first) return;
  before->second += range->second;
  free_.erase(range);
}

absl::StatusOr<LeftResiduals> ReadLeftResiduals(const std::string& path, WorkerId worker,
                                                const Partition& partition) {
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return ErrorOf(path, "cannot read");
  const absl::Cleanup close_file = [file] { close(file); };
  Head head;
  if (!ReadAt(file, 0, std::as_writable_bytes(std::span(&head, 1)))) {
    return absl::DataLossError(absl::StrCat(path, ": truncated head"));
  }
  RETURN_IF_ERROR(CheckHead(path, head, worker, partition));
  LeftResiduals left = {.run = RunId{head.run}, .generation = Generation{head.generation}};
  left.shards.resize(partition.shard_count());
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const uint64_t place = kPage + s * kRecordBytes;
    const auto read_record = [&](LiveRecord& record) {
      return ReadAt(file, place, std::as_writable_bytes(std::span(&record, 1)));
    };
    const auto read_array = [&](uint64_t position, std::vector<float>& out) {
      if (position == 0) return true;
      if (position < ArraysBegin(partition) || position % kPage != 0) return false;
      out.resize(partition.value_count(ShardId{s}));
      return ReadAt(file, position, std::as_writable_bytes(std::span(out))) &&
             kernels::AllFinite(out);
    };
    LiveRecord record, again;
    if (!read_record(record)) return absl::DataLossError(absl::StrCat(path, ": truncated"));
    LeftShard& shard = left.shards[s];
    shard.step = Step{record.step};
    shard.values.late_examples = record.late_examples;
    // A process that still runs may change the shard meanwhile.
    const bool whole = record.whole() && read_array(record.residual, shard.values.residual) &&
                       read_array(record.momentum, shard.values.momentum) && read_record(again) &&
                       again.sequence == record.sequence;
    if (!whole) shard = {.lost = true, .step = shard.step, .values = {}};
  }
  return left;
}

}  // namespace thinwire::client
