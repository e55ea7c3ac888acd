#include "cli/status/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Time kStart = absl::UnixEpoch();

// Returns the status of a server whose figures are as long as those of a large job.
StatusReply LargeReply() {
  StatusReply reply;
  reply.set_job("mnist");
  reply.set_mode("backup");
  reply.set_generation(2);
  reply.set_target_workers(4);
  reply.set_batch(16'777'216);
  reply.set_accumulate(1024);
  reply.set_wished_workers(65'536);
  reply.set_gradient_norm(1.25e-9);
  reply.set_clipped_updates(1'234'567);
  for (uint32_t i = 0; i < 96; ++i) {
    ShardStatus& shard = *reply.add_shards();
    shard.set_shard(i);
    shard.set_values(262144);
    shard.set_frontier(1'234'567);
  }
  for (uint32_t i = 0; i < 2; ++i) {
    WorkerStatus& worker = *reply.add_workers();
    worker.set_worker(i);
    worker.set_incarnation(2'000'003);
    worker.set_live(i == 0);
    worker.set_left(i == 1);
    worker.set_heard_seconds_ago(0.25);
    worker.set_next(1'234'567);
    WorkerProgress& progress = (*reply.mutable_progress())[i];
    progress.set_planned_steps(12'345'678);
    progress.set_examples(1'234'567'890);
    progress.set_seconds(12'345.6);
    progress.set_loss(0.123456);
    progress.mutable_test()->set_step(1'234'000);
    progress.mutable_test()->set_accuracy(0.98765);
  }
  reply.set_accepted_pushes(123'456'789);
  reply.set_late_pushes(1'234'567);
  reply.set_push_payload_bytes(123'456'789'012);
  reply.set_parameters_payload_bytes(987'654'321'098);
  reply.set_buffered_bytes(12'345'678);
  (*reply.mutable_staleness())[0] = 1;
  (*reply.mutable_staleness())[3] = 1;
  return reply;
}

size_t LongestLine(const std::string& text) {
  size_t longest = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    longest = std::max(longest, line.size());
  }
  return longest;
}

TEST(StatusTextTest, EveryFigureOfALargeJobFitsEightyColumns) {
  StatusReply reply = LargeReply();
  reply.set_insecure(true);
  reply.set_log_records(123'456'789);
  reply.set_log_bytes(123'456'789'012);
  reply.set_log_commits(12'345'678);
  reply.set_checkpoints(123'456);
  reply.set_failed_checkpoints(12);
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0}), ServerHistory(ServerId{1})};
  servers[0].Add(reply, kStart);
  servers[1].AddFailure(kStart);
  const std::string text = StatusText(servers, kStart + absl::Seconds(1));
  EXPECT_THAT(text, HasSubstr("server 1 has not answered for 1.0 s\n"));
  EXPECT_LE(LongestLine(text), 80u) << text;
  EXPECT_THAT(text,
              HasSubstr("job         mnist\nstate       waiting for server 1\nmode        backup\n"
                        "generation  2\n"));
  EXPECT_THAT(text,
              HasSubstr("step        1,234,567 of 12,345,678\nspeed       100,001 examples/s\n"
                        "loss        0.1235\ntest        accuracy 0.9877 at step 1,234,000\n"));
  EXPECT_THAT(text, HasSubstr("servers     1 of 2 answered\nworkers     1 of 2 live, 4 wanted\n"));
  EXPECT_THAT(text, HasSubstr("batch       16,777,216 examples, 1024 batches per worker, "
                              "65536 workers wished\n"));
  EXPECT_THAT(text, HasSubstr("gradient    norm 1.25e-09, 1,234,567 updates clipped\n"));
  EXPECT_THAT(text, HasSubstr("INSECURE: server 0 listens for other machines"));
  EXPECT_THAT(
      text, HasSubstr("\n0        live  1,234,567  1.2 s ago      2000003     100,001  0.1235\n"));
  EXPECT_THAT(
      text, HasSubstr("\n1        left  1,234,567  1.2 s ago      2000003     100,001  0.1235\n"));
  EXPECT_THAT(text, HasSubstr("staleness of accepted pushes: mean 1.50, max 3\n"));
  EXPECT_THAT(text, HasSubstr("123,456,789"));
  EXPECT_THAT(text, HasSubstr("123,456, 12 failed        1.0 s ago\n"));
}

TEST(StatusTextTest, AServerThatNeverAnsweredHasARowWithoutFigures) {
  const std::vector<ServerHistory> servers = {ServerHistory(ServerId{0})};
  const std::string text = StatusText(servers, kStart);
  EXPECT_THAT(text, HasSubstr("servers     0 of 1 answered\n"));
  EXPECT_THAT(text, HasSubstr("never"));
  EXPECT_THAT(text, Not(HasSubstr("generation")));
}

TEST(StatusTextTest, AJobWithoutWorkersSaysSo) {
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0})};
  servers[0].Add(StatusReply(), kStart);
  const std::string text = StatusText(servers, kStart);
  EXPECT_THAT(text, HasSubstr("workers     none has joined yet\n"));
  EXPECT_THAT(text, Not(HasSubstr("checkpoints")));
}

}  // namespace
}  // namespace thinwire
