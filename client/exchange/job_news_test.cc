#include "client/exchange/job_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace thinwire::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

HeartbeatReply Live(const std::vector<uint32_t>& workers) {
  HeartbeatReply reply;
  for (const uint32_t worker : workers) reply.add_live(worker);
  return reply;
}

TEST(JobNewsTest, TheLeadNamesTheLiveWorkers) {
  JobNews news;
  EXPECT_THAT(news.live(), IsEmpty());
  news.Add(ServerId{1}, Live({1, 2}));
  EXPECT_THAT(news.live(), IsEmpty());
  news.Add(ServerId{0}, Live({2, 3}));
  EXPECT_THAT(news.live(), ElementsAre(WorkerId{2}, WorkerId{3}));
  EXPECT_THAT(news.LiveExcept(WorkerId{2}), ElementsAre(WorkerId{1}, WorkerId{3}));
}

TEST(JobNewsTest, OnlyRepliesOfTheLeadCount) {
  JobNews news;
  news.Add(ServerId{1}, Live({}));
  EXPECT_FALSE(news.WaitForLeadReplies(1, absl::ZeroDuration()));
  news.Add(ServerId{0}, Live({}));
  EXPECT_TRUE(news.WaitForLeadReplies(1, absl::ZeroDuration()));
  EXPECT_EQ(news.lead_reply_count(), 1u);
}

TEST(JobNewsTest, AWorkerIsAloneIfEveryServerSaysSo) {
  JobNews news;
  const auto alone = [&] { return news.WaitUntilAlone(WorkerId{2}, 2, absl::ZeroDuration()); };
  news.Add(ServerId{0}, Live({2}));
  EXPECT_FALSE(alone()) << "server 1 has not replied";
  news.Add(ServerId{1}, Live({1, 2}));
  EXPECT_FALSE(alone());
  news.Add(ServerId{1}, Live({2}));
  EXPECT_TRUE(alone());
}

TEST(JobNewsTest, AReplyWithoutNewsChangesNothing) {
  JobNews news;
  EXPECT_EQ(news.WaitForEvaluator(absl::ZeroDuration()), std::nullopt);
  EXPECT_EQ(news.WaitForStopStep(absl::ZeroDuration()), std::nullopt);
  HeartbeatReply reply;
  reply.set_evaluator(3);
  reply.set_stop_step(7);
  reply.set_checkpoint_step(5);
  news.Add(ServerId{0}, reply);
  news.Add(ServerId{0}, HeartbeatReply());
  EXPECT_EQ(news.WaitForEvaluator(absl::ZeroDuration()), WorkerId{3});
  EXPECT_EQ(news.WaitForStopStep(absl::ZeroDuration()), Step{7});
  EXPECT_EQ(news.checkpoint_step(), Step{5});
  news.Resume();
  EXPECT_EQ(news.checkpoint_step(), std::nullopt);
}

TEST(JobNewsTest, NoWaitOutlastsARollback) {
  JobNews news;
  news.EndWaits();
  EXPECT_EQ(news.WaitForEvaluator(absl::InfiniteDuration()), std::nullopt);
  EXPECT_EQ(news.WaitForStopStep(absl::InfiniteDuration()), std::nullopt);
  EXPECT_FALSE(news.WaitForLeadReplies(1, absl::InfiniteDuration()));
  EXPECT_FALSE(news.WaitUntilAlone(WorkerId{0}, 1, absl::InfiniteDuration()));
  news.Resume();
  news.Add(ServerId{0}, HeartbeatReply());
  EXPECT_TRUE(news.WaitForLeadReplies(1, absl::InfiniteDuration()));
}

}  // namespace
}  // namespace thinwire::client
