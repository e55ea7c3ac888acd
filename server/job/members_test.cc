// Tests a job whose workers have several members (docs/model_parallel.md).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/parameter_service.pb.h"
#include "server/job/testing/job_servers.h"

namespace thinwire {
namespace {

class MembersTest : public JobServersTest {
 protected:
  // A worker of two processes, of two tensors each.
  void Start(const Rule& rule) {
    JobSpec spec;
    spec.rule = rule;
    spec.members = 2;
    std::vector<TensorShape> tensors = {{"w1", {3, 2}}, {"b1", {3}}, {"w2", {2, 3}}, {"b2", {2}}};
    for (TensorShape& tensor : tensors) tensor.apart = true;
    StartServers(spec, tensors);
    ASSERT_EQ(partition_.shard_count(), 4u);
  }

  Pending<JoinReply> StartJoin(uint32_t worker, uint32_t member, const std::vector<uint32_t>& owned,
                               bool* abandoned = nullptr) {
    JoinRequest request = JoinRequestOf(partition_, worker, 0, 0);
    request.set_shard_size(partition_.shard_size());
    request.set_member(member);
    request.mutable_owned_tensors()->Add(owned.begin(), owned.end());
    Pending<JoinReply> pending;
    jobs_[0]->Join(
        request, [abandoned] { return abandoned != nullptr && *abandoned; }, pending.done());
    Status(0);  // ends behind the request
    return pending;
  }
  // Both processes of WORKER join, as one incarnation, and open their streams.
  void JoinBoth(uint32_t worker) {
    Pending<JoinReply> first = StartJoin(worker, 0, {0, 1});
    EXPECT_FALSE(first.ready());
    Pending<JoinReply> second = StartJoin(worker, 1, {2, 3});
    ASSERT_TRUE(first.Get().ok()) << first.Get().status();
    ASSERT_TRUE(second.Get().ok()) << second.Get().status();
    EXPECT_EQ(first.Get()->incarnation(), second.Get()->incarnation());
    run_ = first.Get()->run();
    streams_[worker].clear();
    for (int member = 0; member < 2; ++member) {
      streams_[worker].push_back(std::make_unique<TestStream>(*jobs_[0]));
    }
  }
  WorkerFrame FrameOf(uint32_t worker, uint32_t member, uint64_t incarnation = 1) const {
    WorkerFrame frame = JobServersTest::FrameOf(worker);
    frame.incarnation = {incarnation};
    frame.member = member;
    return frame;
  }
  std::vector<ShardId> ShardsOf(uint32_t member) const {
    std::vector<ShardId> shards;
    for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
      if (partition_.segments(ShardId{s})[0].tensor / 2 == member) shards.push_back(ShardId{s});
    }
    return shards;
  }
  // MEMBER reads its parameters of step 0, and sends 1 for all of them as the first values.
  void Read(uint32_t worker, uint32_t member) {
    WorkerFrame frame = FrameOf(worker, member);
    for (const ShardId shard : ShardsOf(member)) {
      frame.seeds.push_back({shard, Values(shard, 1)});
      frame.reads.push_back({shard, {0}, {0}, kFp32});
    }
    streams_[worker][member]->Send(frame);
  }
  // Two workers join and have the parameters of step 0.
  void BeginBoth() {
    for (uint32_t w = 0; w < 2; ++w) JoinBoth(w);
    for (uint32_t w = 0; w < 2; ++w) {
      for (uint32_t m = 0; m < 2; ++m) Read(w, m);
    }
    for (uint32_t w = 0; w < 2; ++w) {
      for (uint32_t m = 0; m < 2; ++m) AwaitOwn(w, m, 0);
    }
    Status(0);  // ends behind the renewals of the leases by the frames
  }
  void PushOwn(uint32_t worker, uint32_t member, uint64_t step, float value) {
    WorkerFrame frame = FrameOf(worker, member);
    for (const ShardId shard : ShardsOf(member)) {
      PushEntry& push = frame.pushes.emplace_back();
      push.shard = shard;
      push.step = {step};
      push.examples = 1;
      push.read_codec = kFp32;
      push.payload = Values(shard, value);
    }
    streams_[worker][member]->Send(frame);
  }
  void AwaitOwn(uint32_t worker, uint32_t member, uint64_t step) {
    for (size_t i = 0; i < ShardsOf(member).size(); ++i) {
      const ParametersEntry entry = streams_[worker][member]->NextParameters();
      EXPECT_EQ(entry.step, Step{step});
      EXPECT_EQ(partition_.segments(entry.shard)[0].tensor / 2, member);
    }
  }
  HeartbeatReply Heartbeat(uint32_t worker, uint32_t member, uint64_t incarnation = 1) {
    HeartbeatRequest request;
    request.set_worker(worker);
    request.set_member(member);
    request.set_incarnation(incarnation);
    request.set_epoch(kEpoch.value);
    Pending<HeartbeatReply> pending;
    jobs_[0]->Call(request, pending.done());
    return pending.Get().value();
  }
  absl::Status LeaveJob(uint32_t worker, uint32_t member, bool failed = false) {
    LeaveRequest request;
    request.set_worker(worker);
    request.set_member(member);
    request.set_incarnation(1);
    request.set_failed(failed);
    Pending<LeaveReply> pending;
    jobs_[0]->Call(request, pending.done());
    return pending.Get().status();
  }
};

TEST_F(MembersTest, EachProcessExchangesItsOwnShards) {
  Start(Rule::Sync(2));
  BeginBoth();
  PushOwn(0, 0, 0, 1);
  PushOwn(0, 1, 0, 2);
  PushOwn(1, 0, 0, 3);
  for (uint32_t w = 0; w < 2; ++w) AwaitOwn(w, 0, 1);
  EXPECT_EQ(streams_[0][1]->waiting_count(), 0u);
  PushOwn(1, 1, 0, 4);
  for (uint32_t w = 0; w < 2; ++w) AwaitOwn(w, 1, 1);
  EXPECT_EQ(Status(0).workers_size(), 2) << "one row for the processes of a worker";
}

TEST_F(MembersTest, TensorsOfNoOwnerAndOfTwoAreRefused) {
  Start(Rule::Sync(1));
  Pending<JoinReply> first = StartJoin(0, 0, {0, 1, 2});
  Pending<JoinReply> second = StartJoin(0, 1, {2});
  EXPECT_EQ(
      first.Get().status().message(),
      "worker 0: owned_tensors: expected each tensor to be owned by one member, got \"w2\" of "
      "members 0 and 1, \"b2\" of none");
  EXPECT_EQ(second.Get().status(), first.Get().status());
  EXPECT_EQ(
      StartJoin(0, 1, {}).Get().status().message(),
      "owned_tensors: expected ascending positions of tensors below 4, at least one, got none");
  EXPECT_EQ(StartJoin(0, 1, {3, 2}).Get().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StartJoin(0, 1, {4}).Get().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StartJoin(0, 2, {2, 3}).Get().status().message(),
            "member: not a member of a worker (expected below 2, the value of members, got 2)");
  JoinBoth(0);
}

TEST_F(MembersTest, AShardOfAnotherMemberIsRefused) {
  Start(Rule::Async(1));
  JoinBoth(0);
  WorkerFrame frame = FrameOf(0, 0);
  const ShardId other = ShardsOf(1)[0];
  frame.reads.push_back({other, {0}, {0}, kFp32});
  streams_[0][0]->Send(frame);
  EXPECT_EQ(streams_[0][0]->AwaitEnd().message(),
            absl::StrCat("shard ", other.value,
                         ": belongs to another member than worker 0 incarnation 1"));
}

TEST_F(MembersTest, ALostProcessEndsItsWorkerAtOnce) {
  Start(Rule::Sync(2));
  BeginBoth();
  clock_.Advance(absl::Hours(6));
  for (uint32_t w = 0; w < 2; ++w) Heartbeat(w, 0);
  Heartbeat(1, 1);
  clock_.Advance(absl::Hours(5));
  Tick(0);  // process 1 of worker 0 was silent
  EXPECT_TRUE(Heartbeat(0, 0).fenced());
  EXPECT_FALSE(Heartbeat(1, 0).fenced());
  for (uint32_t m = 0; m < 2; ++m) PushOwn(1, m, 0, 1);
  for (uint32_t m = 0; m < 2; ++m) AwaitOwn(1, m, 1);  // the other worker goes on
  // The remaining process does not count any more.
  PushOwn(0, 0, 0, 1);
  EXPECT_EQ(streams_[0][0]->NextVerdict().kind, static_cast<uint32_t>(PushVerdict::FENCED));
  Pending<JoinReply> first = StartJoin(0, 0, {0});
  Pending<JoinReply> second = StartJoin(0, 1, {1, 2, 3});
  EXPECT_EQ(first.Get()->incarnation(), 2u);
  EXPECT_EQ(second.Get()->incarnation(), 2u);
  // The cut is at another tensor than before and than in worker 1.
  TestStream again(*jobs_[0]);
  WorkerFrame frame = FrameOf(0, 1, /*incarnation=*/2);
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    if (partition_.segments(ShardId{s})[0].tensor > 0) {
      frame.reads.push_back({ShardId{s}, {1}, {0}, kFp32});
    }
  }
  again.Send(frame);
  for (size_t i = 0; i < frame.reads.size(); ++i) EXPECT_EQ(again.NextParameters().step, Step{1});
}

TEST_F(MembersTest, AWorkerLeavesWithItsLastProcess) {
  Start(Rule::Sync(2));
  for (uint32_t w = 0; w < 2; ++w) JoinBoth(w);
  ASSERT_TRUE(LeaveJob(0, 1).ok());
  EXPECT_FALSE(Status(0).workers(0).left());
  ASSERT_TRUE(LeaveJob(0, 0).ok());
  EXPECT_TRUE(Status(0).workers(0).left());
  ASSERT_TRUE(LeaveJob(1, 0, /*failed=*/true).ok());
  EXPECT_TRUE(Status(0).workers(1).left());
  EXPECT_TRUE(Heartbeat(1, 1).fenced());
}

TEST_F(MembersTest, AnAbandonedJoinIsReplacedByTheNextOneOfTheMember) {
  Start(Rule::Sync(1));
  bool abandoned = false;
  Pending<JoinReply> lost = StartJoin(0, 0, {0, 1}, &abandoned);
  EXPECT_EQ(StartJoin(0, 0, {0, 1}).Get().status().message(),
            "worker 0 member 0: is in use; another process waits for the other members");
  abandoned = true;
  JoinBoth(0);
  EXPECT_EQ(lost.Get().status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace thinwire
