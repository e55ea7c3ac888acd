#include "server/durable/disk_speed.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/durable/testing/faulty_files.h"

namespace thinwire {
namespace {

TEST(DiskSpeedTest, TheTimeOfEveryFlushCounts) {
  FaultyFiles files;
  ManualClock clock;
  ASSERT_TRUE(files.MakeFolder("state").ok());
  int flush_count = 0;
  files.BeforeSync([&] {
    // The first 16 flushes are small. One of them is slow.
    ++flush_count;
    clock.Advance(absl::Milliseconds(flush_count == 3 ? 500 : flush_count <= 16 ? 2 : 10));
  });
  const auto speed = MeasureDisk(files, "state", clock);
  ASSERT_TRUE(speed.ok()) << speed.status();
  EXPECT_EQ(speed->flush, absl::Milliseconds(2));
  EXPECT_NEAR(speed->bytes_per_second, (1 << 20) / 0.01, 1);
  EXPECT_EQ(flush_count, 32);
  EXPECT_TRUE(files.List("state")->empty());
}

TEST(DiskSpeedTest, AFullDiskIsAnErrorAndLeavesNoFile) {
  FaultyFiles files;
  ManualClock clock;
  ASSERT_TRUE(files.MakeFolder("state").ok());
  files.SetFreeBytes(3 << 20);
  EXPECT_EQ(MeasureDisk(files, "state", clock).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(files.List("state")->empty());
  EXPECT_EQ(MeasureDisk(files, "nowhere", clock).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace thinwire
