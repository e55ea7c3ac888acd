#include "cli/doctor/disk_check.h"

#include <gtest/gtest.h>

#include <string>

#include "server/durable/testing/faulty_files.h"

namespace thinwire {
namespace {

JobSpec LogJob() {
  JobSpec job;
  job.rule = Rule::Sync(4);
  job.server_count = 2;
  job.recovery.durability = Durability::kLog;
  return job;
}

TEST(DiskCheckTest, ADiskSlowerThanTheWireIsAWarningWithNumbers) {
  const DiskSpeed slow = {.bytes_per_second = 90e6};
  EXPECT_EQ(DiskWarning(LogJob(), "state", slow, 25'000'000).value(),
            "durability: log writes 200 MB per step on each server; state writes 90 MB/s: at least "
            "2.2 s per step (1 Gbit/s would take 1.6 s)");
  EXPECT_EQ(DiskWarning(LogJob(), "state", slow, std::nullopt).value(),
            "durability: log writes every push; state writes 90 MB/s, less than the 125 MB/s of a "
            "wire of 1 Gbit/s");
  EXPECT_FALSE(DiskWarning(LogJob(), "state", {.bytes_per_second = 200e6}, 9).has_value());
}

TEST(DiskCheckTest, TheDiskOfTheFolderOrOfItsParentIsMeasured) {
  FaultyFiles files;
  ManualClock clock;
  ASSERT_TRUE(files.MakeFolder("disk").ok());
  ASSERT_TRUE(files.MakeFolder("disk/state").ok());
  files.BeforeSync([&] { clock.Advance(absl::Milliseconds(20)); });
  for (const std::string dir : {"disk/state", "disk/absent"}) {
    const auto warning = CheckDisk(LogJob(), dir, files, clock);
    ASSERT_TRUE(warning.ok()) << warning.status();
    EXPECT_EQ(warning->value(),
              "durability: log writes every push; " + dir +
                  " writes 52 MB/s, less than the 125 MB/s of a wire of 1 Gbit/s");
  }
  EXPECT_FALSE(CheckDisk(LogJob(), "nowhere/state", files, clock).ok());
  const uint64_t operations = files.operations();
  EXPECT_FALSE(CheckDisk(JobSpec(), "disk", files, clock)->has_value());
  EXPECT_EQ(files.operations(), operations) << "without a log, nothing is measured";
}

}  // namespace
}  // namespace thinwire
