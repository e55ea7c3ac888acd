#include "cli/train/restarts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr absl::Time kBegin = absl::UnixEpoch();

ProcessEvent End(const std::string& name) {
  ProcessEvent event;
  event.kind = ProcessEvent::Kind::kExit;
  event.name = name;
  event.exit.signal = 9;
  return event;
}

std::vector<std::string> TakeNames(Restarts& restarts, absl::Time now) {
  std::vector<std::string> names;
  for (const ProcessEvent& event : restarts.TakeDue(now)) names.push_back(event.name);
  return names;
}

TEST(RestartsTest, OnlyTheFirstRestartOfAProcessIsImmediate) {
  Restarts restarts(9, absl::Seconds(5));
  EXPECT_EQ(restarts.next(), absl::InfiniteFuture());
  ASSERT_TRUE(restarts.Plan(End("worker 1"), kBegin));
  EXPECT_TRUE(restarts.plans("worker 1"));
  EXPECT_EQ(restarts.next(), kBegin);
  EXPECT_THAT(TakeNames(restarts, kBegin), ElementsAre("worker 1"));
  restarts.SetStarted("worker 1");
  EXPECT_FALSE(restarts.plans("worker 1"));

  ASSERT_TRUE(restarts.Plan(End("worker 1"), kBegin));
  ASSERT_TRUE(restarts.Plan(End("worker 2"), kBegin));
  EXPECT_THAT(TakeNames(restarts, kBegin), ElementsAre("worker 2"));
  EXPECT_EQ(restarts.next(), kBegin + absl::Seconds(5));
  EXPECT_THAT(TakeNames(restarts, kBegin + absl::Seconds(4)), IsEmpty());
  EXPECT_THAT(TakeNames(restarts, kBegin + absl::Seconds(5)), ElementsAre("worker 1"));
}

TEST(RestartsTest, PlannedAndPerformedRestartsCount) {
  Restarts restarts(2, absl::ZeroDuration());
  ASSERT_TRUE(restarts.Plan(End("worker 1"), kBegin));
  EXPECT_THAT(TakeNames(restarts, kBegin), ElementsAre("worker 1"));
  restarts.SetStarted("worker 1");
  EXPECT_EQ(restarts.started_count(), 1u);
  ASSERT_TRUE(restarts.Plan(End("server 0"), kBegin));
  EXPECT_FALSE(restarts.Plan(End("worker 2"), kBegin));
  // The program of server 0 could not be started.
  EXPECT_THAT(TakeNames(restarts, kBegin), ElementsAre("server 0"));
  EXPECT_TRUE(restarts.Plan(End("worker 2"), kBegin));
}

}  // namespace
}  // namespace thinwire
