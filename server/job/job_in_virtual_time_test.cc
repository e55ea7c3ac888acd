// A real Job, with its event log, on one thread and in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "common/model/partition.h"
#include "common/time/virtual_time.h"
#include "server/durable/testing/faulty_files.h"
#include "server/job/job.h"
#include "server/job/testing/test_stream.h"

namespace thinwire {
namespace {

using ::testing::SizeIs;

constexpr char kFolder[] = "/state";

// One process of a server with one worker.
class VirtualServer {
 public:
  VirtualServer(FaultyFiles& files, VirtualTime& time, uint64_t start) : time_(time) {
    JobOptions options;
    options.rule = Rule::Sync(1);
    options.lease = absl::Seconds(10);
    options.epoch = Epoch{start};
    options.durable = DurableOptions{.files = &files, .folder = kFolder};
    options.group_updates = {
        {MakeOptimizer({}).value(), Schedule::Make({.learning_rate = 0.5}).value()}};
    job_ = std::make_unique<Job>(
        options, time,
        JobExecutors{.threads = time, .background = time, .shards = time, .unix_clock = time});
  }

  Job& job() { return *job_; }
  absl::StatusOr<JoinReply> Join() {
    const Partition partition = Partition::Make({{"w", {2, 2}}, {"b", {3}}}, 0, 1).value();
    Pending<JoinReply> pending(run_task_);
    job_->Join(
        JoinRequestOf(partition, /*worker=*/0, /*incarnation=*/0, /*run=*/0), [] { return false; },
        pending.done());
    return pending.Get();
  }
  StatusReply Status() {
    Pending<StatusReply> pending(run_task_);
    job_->Call(StatusRequest(), pending.done());
    return pending.Get().value();
  }
  void Stop() {
    bool stopped = false;
    job_->Stop([&stopped] { stopped = true; });
    while (!stopped) time_.RunNext();
  }

 private:
  VirtualTime& time_;
  const RunTask run_task_ = [this] { time_.RunNext(); };
  std::unique_ptr<Job> job_;
};

// Runs a server until the lease of its worker has ended, and starts it again. Returns the times of
// these events.
std::vector<absl::Duration> EndLeaseAndRestart() {
  std::vector<absl::Duration> times;
  FaultyFiles files;
  EXPECT_TRUE(files.MakeFolder(kFolder).ok());
  EXPECT_TRUE(files.SyncFolder("/").ok());
  VirtualTime time;
  {
    VirtualServer server(files, time, 1);
    EXPECT_TRUE(server.job().Recover().ok());
    server.job().StartTicking(absl::Milliseconds(100));
    const absl::StatusOr<JoinReply> joined = server.Join();
    EXPECT_TRUE(joined.ok()) << joined.status();
    EXPECT_EQ(joined->incarnation(), 1u);
    times.push_back(time.elapsed());
    while (server.Status().lease_expirations() == 0) time.RunNext();
    times.push_back(time.elapsed());
    server.Stop();
  }
  // The job has taken its tasks with it.
  EXPECT_TRUE(time.empty());
  VirtualServer server(files, time, 2);
  EXPECT_TRUE(server.job().Recover().ok());
  server.job().StartTicking(absl::Milliseconds(100));
  EXPECT_TRUE(server.Status().recovered());
  const absl::StatusOr<JoinReply> joined = server.Join();
  EXPECT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->incarnation(), 2u) << "the log has the first process";
  times.push_back(time.elapsed());
  return times;
}

TEST(JobInVirtualTimeTest, LeasesEndAndTheLogIsReplayedWithoutAThread) {
  const std::vector<absl::Duration> times = EndLeaseAndRestart();
  ASSERT_THAT(times, SizeIs(3));
  EXPECT_EQ(times[0], absl::ZeroDuration());
  EXPECT_GE(times[1], absl::Seconds(10));
  EXPECT_LT(times[1], absl::Seconds(11));
  EXPECT_EQ(times, EndLeaseAndRestart()) << "a run in virtual time repeats";
}

}  // namespace
}  // namespace thinwire
