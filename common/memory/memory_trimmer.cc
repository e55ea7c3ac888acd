#include "common/memory/memory_trimmer.h"

#include <malloc.h>

namespace thinwire {

MemoryTrimmer::MemoryTrimmer(absl::Duration interval) {
  thread_ = std::thread([this, interval] {
    while (!stopped_.WaitForNotificationWithTimeout(interval)) {
      if (mallinfo2().fordblks >= kKeptBytes) malloc_trim(/*pad=*/0);
    }
  });
}

MemoryTrimmer::~MemoryTrimmer() {
  stopped_.Notify();
  thread_.join();
}

}  // namespace thinwire
