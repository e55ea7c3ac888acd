#include "server/shards/counters.h"

#include "gtest/gtest.h"

namespace thinwire {
namespace {

Effects Judged(Verdict verdict, bool again = false, uint64_t staleness = 0) {
  Effects effects;
  effects.judgement.emplace();
  effects.judgement->verdict = verdict;
  effects.judgement->again = again;
  effects.judgement->staleness = staleness;
  return effects;
}

Effects Closed(uint64_t step, std::vector<WorkerId> accepted) {
  Effects effects;
  effects.rounds.push_back({{step}, std::move(accepted)});
  return effects;
}

StatusReply Read(const Counters& counters) {
  StatusReply reply;
  counters.FillIn(reply);
  return reply;
}

TEST(CountersTest, CountsEachVerdict) {
  Counters counters;
  for (Verdict verdict : {Verdict::kAccept, Verdict::kLate, Verdict::kLate, Verdict::kRefused,
                          Verdict::kFenced, Verdict::kStale, Verdict::kEarly, Verdict::kRepeat}) {
    counters.Count(Judged(verdict));
  }
  counters.Count(Judged(Verdict::kAccept, /*again=*/true));
  const StatusReply reply = Read(counters);
  EXPECT_EQ(reply.accepted_pushes(), 1u);
  EXPECT_EQ(reply.late_pushes(), 2u);
  EXPECT_EQ(reply.refused_pushes(), 1u);
  EXPECT_EQ(reply.fenced_pushes(), 1u);
  EXPECT_EQ(reply.stale_pushes(), 1u);
  EXPECT_EQ(reply.early_pushes(), 1u);
  EXPECT_EQ(reply.repeated_pushes(), 2u);
}

TEST(CountersTest, CountsTheStalenessOfAcceptedPushesUpToALimit) {
  Counters counters;
  counters.Count(Judged(Verdict::kAccept, false, 3));
  counters.Count(Judged(Verdict::kAccept, false, 3));
  counters.Count(Judged(Verdict::kLate, false, 5));
  counters.Count(Judged(Verdict::kAccept, false, uint64_t{1} << 60));
  const StatusReply reply = Read(counters);
  EXPECT_EQ(reply.staleness().size(), 2u);
  EXPECT_EQ(reply.staleness().at(3), 2u);
  EXPECT_EQ(reply.staleness().at(kMaxStaleness), 1u);
}

TEST(CountersTest, CountsTheEffectsOfStalenessPolicies) {
  Counters counters;
  Effects dropped = Judged(Verdict::kRefused);
  dropped.judgement->dropped = true;
  Effects uncompensated = Judged(Verdict::kAccept, false, 3);
  uncompensated.judgement->uncompensated = true;
  counters.Count(dropped);
  counters.Count(dropped);
  counters.Count(uncompensated);
  counters.Count(Judged(Verdict::kRefused));
  counters.Count(Judged(Verdict::kAccept, false, 3));
  const StatusReply reply = Read(counters);
  EXPECT_EQ(reply.refused_pushes(), 3u);
  EXPECT_EQ(reply.dropped_pushes(), 2u);
  EXPECT_EQ(reply.accepted_pushes(), 2u);
  EXPECT_EQ(reply.uncompensated_pushes(), 1u);
}

TEST(CountersTest, AStepWithOtherWorkersOnAnotherShardIsSplit) {
  Counters counters;
  counters.SetShardCount(3);
  for (int shard = 0; shard < 3; ++shard) counters.Count(Closed(7, {{0}, {1}}));
  EXPECT_EQ(Read(counters).split_steps(), 0u);
  counters.Count(Closed(8, {{0}, {1}}));
  counters.Count(Closed(8, {{0}, {2}}));
  counters.Count(Closed(8, {{1}, {2}}));
  EXPECT_EQ(Read(counters).split_steps(), 1u);
}

TEST(CountersTest, UpdatesAddUp) {
  Counters counters;
  for (const uint64_t bytes : {10, 5}) {
    counters.Update([bytes](StatusReply& counts) {
      counts.set_push_payload_bytes(counts.push_payload_bytes() + bytes);
    });
  }
  StatusReply reply;
  reply.set_job("train");
  counters.FillIn(reply);
  EXPECT_EQ(reply.push_payload_bytes(), 15u);
  EXPECT_EQ(reply.lease_expirations(), 0u);
  EXPECT_EQ(reply.job(), "train") << "other fields keep their values";
}

}  // namespace
}  // namespace thinwire
