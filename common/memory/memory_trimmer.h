// MemoryTrimmer returns freed memory to the operating system. malloc keeps it: after a burst of
// many calls, which peers can cause, a process would hold their memory until it ends.
//
// Every interval, a thread of its own asks malloc how much free memory it holds, and trims it if it
// is kKeptBytes or more. A trim of 400 MB takes 0.2 s, during which some allocations wait.
#ifndef THINWIRE_COMMON_MEMORY_MEMORY_TRIMMER_H_
#define THINWIRE_COMMON_MEMORY_MEMORY_TRIMMER_H_

#include <cstddef>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace thinwire {

class MemoryTrimmer {
 public:
  static constexpr size_t kKeptBytes = size_t{64} << 20;

  explicit MemoryTrimmer(absl::Duration interval = absl::Seconds(30));
  ~MemoryTrimmer();
  MemoryTrimmer(const MemoryTrimmer&) = delete;
  MemoryTrimmer& operator=(const MemoryTrimmer&) = delete;

 private:
  absl::Notification stopped_;
  std::thread thread_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MEMORY_MEMORY_TRIMMER_H_
