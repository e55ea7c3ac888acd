#include "server/durable/disk_speed.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/memory/byte_chain.h"

namespace thinwire {
namespace {

constexpr size_t kSmallBytes = 4 << 10;
constexpr size_t kLargeBytes = 1 << 20;
constexpr size_t kRepetitions = 16;

// Returns bytes that a disk cannot compress.
ByteChain Noise(size_t size) {
  std::vector<std::byte> bytes(size);
  uint32_t noise = 1;
  for (std::byte& byte : bytes) {
    noise = noise * 1664525 + 1013904223;
    byte = static_cast<std::byte>(noise >> 24);
  }
  return ByteChain(std::move(bytes));
}

// Appends SIZE bytes to FILE and flushes them kRepetitions times. Returns the times in ascending
// order.
absl::StatusOr<std::vector<absl::Duration>> TimesOf(WritableFile& file, size_t size, Clock& clock) {
  const ByteChain bytes = Noise(size);
  std::vector<absl::Duration> times;
  for (size_t i = 0; i < kRepetitions; ++i) {
    const absl::Time start = clock.Now();
    RETURN_IF_ERROR(file.Append(bytes));
    RETURN_IF_ERROR(file.Sync());
    times.push_back(clock.Now() - start);
  }
  std::ranges::sort(times);
  return times;
}

absl::StatusOr<DiskSpeed> Measure(Files& files, const std::string& path, Clock& clock) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(path));
  DiskSpeed speed;
  ASSIGN_OR_RETURN(const std::vector<absl::Duration> small, TimesOf(*file, kSmallBytes, clock));
  speed.flush = small[kRepetitions / 2];
  ASSIGN_OR_RETURN(const std::vector<absl::Duration> large, TimesOf(*file, kLargeBytes, clock));
  absl::Duration total;
  for (const absl::Duration time : large) total += time;
  const double seconds = std::max(absl::ToDoubleSeconds(total), 1e-9);
  speed.bytes_per_second = kRepetitions * kLargeBytes / seconds;
  return speed;
}

}  // namespace

absl::StatusOr<DiskSpeed> MeasureDisk(Files& files, const std::string& folder, Clock& clock) {
  const std::string path = folder + "/disk_speed.tmp";
  // An interrupted measurement has left the file.
  if (files.Read(path).ok()) RETURN_IF_ERROR(files.Remove(path));
  const absl::StatusOr<DiskSpeed> speed = Measure(files, path, clock);
  const absl::Status removed = files.Remove(path);
  RETURN_IF_ERROR(speed.status());
  RETURN_IF_ERROR(removed);
  return speed;
}

}  // namespace thinwire
