#include "client/exchange/status_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace thinwire::client {
namespace {

std::string Ranges(std::vector<uint32_t> numbers) {
  std::vector<ShardId> shards;
  for (uint32_t n : numbers) shards.push_back(ShardId{n});
  return ShardRanges(shards);
}

TEST(ShardRangesTest, RunsAreJoinedAndGapsKept) {
  EXPECT_EQ(Ranges({}), "no shard");
  EXPECT_EQ(Ranges({3}), "shard 3");
  EXPECT_EQ(Ranges({3, 4}), "shards 3-4");
  EXPECT_EQ(Ranges({0, 3, 4, 5, 9}), "shards 0, 3-5, 9");
}

TEST(WaitingReadsTest, ShardsWithTheSameCauseAreNamedTogether) {
  WaitingReads waits;
  EXPECT_EQ(waits.Text(), "");
  for (uint32_t s : {0, 1, 2, 5}) {
    waits.Add({.shard = ShardId{s}, .step = Step{41}, .workers = {WorkerId{3}}});
  }
  waits.Add({.shard = ShardId{4}, .step = Step{41}, .workers = {WorkerId{1}, WorkerId{3}}});
  EXPECT_EQ(waits.Text(),
            "step 41: waits for worker 3 (shards 0-2, 5); "
            "step 41: waits for workers 1, 3 (shard 4)");
}

TEST(WaitingReadsTest, OnlySomeOfManyWorkersAreNamed) {
  WaitingReads waits;
  WaitingEntry entry = {.shard = ShardId{0}, .step = Step{7}};
  for (uint32_t w = 0; w < 1'000'000; ++w) entry.workers.push_back(WorkerId{w});
  waits.Add(entry);
  EXPECT_EQ(waits.Text(),
            "step 7: waits for workers 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and "
            "999984 more (shard 0)");
}

TEST(WaitingReadsTest, AShardThatIsNotOpenNamesItsCause) {
  WaitingReads waits;
  waits.Add({.shard = ShardId{0}, .live = 1, .wanted = 2});
  waits.Add({.shard = ShardId{1}, .unseeded = true, .live = 1, .wanted = 2});
  EXPECT_EQ(waits.Text(),
            "step 0: waits for a worker to send the first values (shard 1); "
            "step 0: waits for workers, 1 of 2 joined (shard 0)");
}

TEST(StatusReportTest, AnOutageIsReportedInsteadOfWaitingReads) {
  StatusReport report;
  report.set_waiting("step 1: waits for worker 3 (shard 0)");
  report.set_outage("waiting for server 1 (in process): connection refused");
  EXPECT_EQ(report.waiting(), "waiting for server 1 (in process): connection refused");
  report.set_outage("");
  EXPECT_EQ(report.waiting(), "step 1: waits for worker 3 (shard 0)");
}

TEST(StatusReportTest, AWaitIsCountedUnderItsStrongestCause) {
  constexpr int kPushes = WorkerCounters::kWaitPushesMicrosFieldNumber;
  constexpr int kParameters = WorkerCounters::kWaitParametersMicrosFieldNumber;
  StatusReport report;
  const auto wait = [&](int milliseconds, int field_number, auto... causes) {
    report.BeginWait();
    (causes(), ...);
    report.EndWait(absl::Milliseconds(milliseconds), field_number);
  };
  const auto name_worker = [&] { report.set_waiting("step 1: waits for worker 3 (shard 0)"); };
  const auto name_no_worker = [&] { report.set_waiting(""); };
  const auto name_server = [&] { report.set_outage("waiting for server 1: refused"); };
  const auto name_no_server = [&] { report.set_outage(""); };

  wait(1, kPushes);
  wait(2, kParameters);
  wait(4, kParameters, name_worker, name_no_worker);
  wait(8, kParameters, name_worker, name_server, name_no_server, name_no_worker);
  wait(16, kPushes, name_worker);
  wait(32, kParameters);  // the server's notice is still valid
  wait(64, kPushes, name_server);
  wait(128, kPushes, name_no_server, name_no_worker);  // the outage ends during the wait
  wait(256, kParameters);
  const WorkerCounters counters = report.counters();
  EXPECT_EQ(counters.wait_pushes_micros(), 17'000u);
  EXPECT_EQ(counters.wait_parameters_micros(), 258'000u);
  EXPECT_EQ(counters.wait_workers_micros(), 36'000u);
  EXPECT_EQ(counters.wait_servers_micros(), 200'000u);
}

TEST(WaitingReadsTest, ClearRemovesTheNoticeOfAShard) {
  WaitingReads waits;
  waits.Add({.shard = ShardId{0}, .step = Step{1}, .workers = {WorkerId{3}}});
  EXPECT_FALSE(waits.Clear(ShardId{7}));
  EXPECT_TRUE(waits.Clear(ShardId{0}));
  EXPECT_EQ(waits.Text(), "");
}

}  // namespace
}  // namespace thinwire::client
