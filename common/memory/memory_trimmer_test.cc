#include "common/memory/memory_trimmer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "absl/time/clock.h"

namespace thinwire {
namespace {

// Returns the memory that this process occupies.
size_t ResidentBytes() {
  size_t all = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<size_t>(getpagesize());
}

TEST(MemoryTrimmerTest, FreedBlocksBetweenUsedOnesAreReturned) {
  constexpr size_t kBlockBytes = 11000;
  constexpr size_t kBlockCount = 4 * MemoryTrimmer::kKeptBytes / kBlockBytes;
  const size_t before = ResidentBytes();
  std::vector<std::unique_ptr<char[]>> freed;
  std::vector<std::unique_ptr<char[]>> used;
  for (size_t i = 0; i < kBlockCount; ++i) {
    freed.push_back(std::make_unique<char[]>(kBlockBytes));
    std::memset(freed.back().get(), 1, kBlockBytes);
    // A used block keeps its page, so only some of the blocks have one as their neighbour.
    if (i % 8 == 0) used.push_back(std::make_unique<char[]>(100));
  }
  freed.clear();
  const size_t limit = before + MemoryTrimmer::kKeptBytes;
  ASSERT_GT(ResidentBytes(), limit) << "malloc has returned the memory by itself";
  const MemoryTrimmer trimmer(absl::Milliseconds(10));
  for (int i = 0; i < 3000 && ResidentBytes() > limit; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_LE(ResidentBytes(), limit);
  EXPECT_GT(used.size(), kBlockCount / 10);
}

}  // namespace
}  // namespace thinwire
