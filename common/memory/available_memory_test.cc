#include "common/memory/available_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace thinwire {
namespace {

class AvailableMemoryTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file(root_ + "/" + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string root_ = testing::TempDir() + "/available_memory";
};

TEST_F(AvailableMemoryTest, WithoutFilesNothingIsKnown) {
  EXPECT_EQ(AvailableMemory(root_), std::numeric_limits<uint64_t>::max());
}

TEST_F(AvailableMemoryTest, ReadsTheMemoryOfTheMachine) {
  Write("proc/meminfo",
        "MemTotal:  900 kB\nMemFree:  3 kB\nMemAvailable:   500 kB\nCached: 9 kB\n");
  EXPECT_EQ(AvailableMemory(root_), 500u * 1024);
}

TEST_F(AvailableMemoryTest, TheSmallestLimitOfNestedGroupsApplies) {
  Write("proc/meminfo", "MemAvailable: 500 kB\n");
  Write("proc/self/cgroup", "0::/outer/inner\n");
  Write("sys/fs/cgroup/outer/memory.max", "4096\n");
  Write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  EXPECT_EQ(AvailableMemory(root_), 4096u);
}

TEST_F(AvailableMemoryTest, ReadsLimitsOfVersionOne) {
  Write("proc/meminfo", "MemAvailable: 500 kB\n");
  Write("proc/self/cgroup", "7:cpu:/a\n5:memory:/b\n");
  Write("sys/fs/cgroup/memory/b/memory.limit_in_bytes", "8192\n");
  EXPECT_EQ(AvailableMemory(root_), 8192u);
}

TEST_F(AvailableMemoryTest, ThisMachineHasMemory) { EXPECT_GT(AvailableMemory(), 0u); }

}  // namespace
}  // namespace thinwire
