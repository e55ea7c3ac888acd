#include "server/job/make_job.h"

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "common/time/clock.h"
#include "server/job/job_threads.h"

namespace thinwire {
namespace {

TEST(MakeJobTest, TheDefaultsMakeAJob) {
  ManualClock clock;
  JobThreads threads;
  EXPECT_TRUE(MakeJob({}, {.epoch = Epoch{1}}, clock, threads.executors()).ok());
}

TEST(MakeJobTest, EveryProblemIsReported) {
  ManualClock clock;
  JobThreads threads;
  JobSpec spec;
  spec.optimizer.momentum = 1;
  spec.lease = absl::Seconds(-1);
  EXPECT_EQ(
      MakeJob(spec, {.server = ServerId{2}, .epoch = Epoch{1}}, clock, threads.executors())
          .status(),
      absl::InvalidArgumentError(
          "lease_seconds: out of range (expected above 0 and at most a year of seconds, got -1)\n"
          "momentum: out of range (expected at least 0 and below 1, got 1)\n"
          "server: out of range (expected below 1, the value of servers, got 2)"));
}

}  // namespace
}  // namespace thinwire
