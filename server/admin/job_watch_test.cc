#include "server/admin/job_watch.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace thinwire {
namespace {

// A server whose replies the test sends. Thread-safe.
class FakeSource {
 public:
  StatusSource source(ServerId server) {
    return {server, [this](StatusSource::Done done) {
              absl::MutexLock lock(&mu_);
              ++count_;
              done_ = std::move(done);
            }};
  }

  // Blocks until the server has been asked COUNT times, and returns the reply's callback.
  StatusSource::Done Await(int count) {
    absl::MutexLock lock(&mu_);
    const auto asked = [this, count] { return count_ >= count; };
    mu_.Await(absl::Condition(&asked));
    return std::move(done_);
  }
  int count() {
    absl::MutexLock lock(&mu_);
    return count_;
  }

 private:
  absl::Mutex mu_;
  int count_ = 0;
  StatusSource::Done done_;
};

StatusReply ReplyOf(uint64_t accepted) {
  StatusReply reply;
  reply.set_accepted_pushes(accepted);
  return reply;
}

constexpr absl::Duration kInterval = absl::Milliseconds(1);

TEST(JobWatchTest, TheNewestReplyOfEachServerIsKept) {
  FakeSource own;
  FakeSource other;
  ManualClock clock;
  JobWatch watch({own.source(ServerId{0}), other.source(ServerId{1})}, clock, kInterval);
  own.Await(1)(ReplyOf(5));
  const auto again = own.Await(2);
  EXPECT_EQ(watch.histories()[0].latest()->accepted_pushes(), 5u);
  EXPECT_EQ(watch.histories()[1].latest(), nullptr);
  EXPECT_EQ(watch.histories()[1].server(), ServerId{1});
  again(ReplyOf(6));
  other.Await(1)(ReplyOf(9));
  EXPECT_EQ(watch.histories()[0].latest()->accepted_pushes(), 6u);
  EXPECT_EQ(watch.histories()[1].latest()->accepted_pushes(), 9u);
}

TEST(JobWatchTest, AServerWithAPendingCallIsNotAskedAgain) {
  FakeSource own;
  FakeSource other;
  ManualClock clock;
  JobWatch watch({own.source(ServerId{0}), other.source(ServerId{1})}, clock, kInterval);
  for (int i = 1; i <= 20; ++i) own.Await(i)(ReplyOf(1));
  EXPECT_EQ(other.count(), 1);
}

TEST(JobWatchTest, AFailedCallKeepsTheLastReplyAndBeginsAnOutage) {
  FakeSource own;
  ManualClock clock;
  JobWatch watch({own.source(ServerId{0})}, clock, kInterval);
  own.Await(1)(ReplyOf(5));
  own.Await(2)(absl::UnavailableError("gone"));
  const auto again = own.Await(3);
  EXPECT_EQ(watch.histories()[0].latest()->accepted_pushes(), 5u);
  EXPECT_GT(watch.histories()[0].outage(clock.Now()), absl::ZeroDuration());
  again(ReplyOf(6));
  EXPECT_EQ(watch.histories()[0].outage(clock.Now()), absl::ZeroDuration());
}

TEST(JobWatchTest, ThePendingTimeOfTheOwnServerIsKnown) {
  FakeSource own;
  ManualClock clock;
  JobWatch watch({own.source(ServerId{0})}, clock, absl::Hours(1));
  const auto done = own.Await(1);
  clock.Advance(absl::Seconds(11));
  EXPECT_EQ(watch.pending(), absl::Seconds(11));
  done(ReplyOf(1));
  EXPECT_EQ(watch.pending(), absl::ZeroDuration());
}

TEST(JobWatchTest, AReplyAfterTheEndIsDropped) {
  FakeSource own;
  ManualClock clock;
  StatusSource::Done done;
  {
    JobWatch watch({own.source(ServerId{0})}, clock, kInterval);
    done = own.Await(1);
  }
  done(ReplyOf(1));
}

}  // namespace
}  // namespace thinwire
