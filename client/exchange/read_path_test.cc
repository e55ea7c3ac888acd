#include "client/exchange/read_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "client/exchange/exchange_fixture.h"
#include "proto/parameter_service.pb.h"

namespace thinwire::client {
namespace {

using ::testing::HasSubstr;

class ReadPathTest : public ExchangeFixture {
 protected:
  // Sets the initial values of all shards at the servers.
  ReadPathTest() {
    for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
      const ShardId shard{s};
      ServerOf(shard).Seed(shard, std::vector<float>(4096, 3.0f + static_cast<float>(s)));
    }
  }

  FakeServer& ServerOf(ShardId shard) { return servers_[partition_.server(shard).value]; }
  void ReadAll(uint64_t step) {
    loop_->Run([this, step] { reads_.ReadAll(Step{step}); });
  }
};

TEST_F(ReadPathTest, ParametersReachTheReplica) {
  ReadAll(4);
  ASSERT_TRUE(progress_.WaitAll().ok());
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    const Segment& segment = partition_.segments(ShardId{s})[0];
    EXPECT_EQ(replica_.tensor(0)[segment.offset], 3.0f + static_cast<float>(s));
  }
  EXPECT_EQ(counters().pull_bytes_raw(), 4 * partition_.value_count());
  EXPECT_GE(counters().decode_micros(), partition_.shard_count());
  loop_->Run([this] { EXPECT_EQ(reads_.step(), Step{4}); });
}

TEST_F(ReadPathTest, ParametersThatNoReadAwaitsAreDropped) {
  ReadAll(4);
  ASSERT_TRUE(progress_.WaitAll().ok());
  const ByteChain malformed(std::vector<std::byte>(2));
  loop_->Run([&] {
    for (const uint64_t step : {3, 4, 5}) {
      reads_.OnParameters(*links_[0], {.shard = partition_.ShardsOf(ServerId{0})[0],
                                       .step = Step{step},
                                       .version = Version{99},
                                       .payload = malformed});
    }
    reads_.OnParameters(*links_[0], {.shard = ShardId{999}, .step = Step{4}});
  });
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    EXPECT_NE(replica_.held_version(ShardId{s}), Version{99});
  }
  EXPECT_EQ(counters().pull_bytes_raw(), 4 * partition_.value_count());
}

TEST_F(ReadPathTest, ADeltaToAVersionThatIsNotHeldIsReadAgainInFull) {
  std::atomic<int> delta_count = 0;
  servers_[0].set_answer([&](ParametersEntry& answer) {
    if (delta_count++ == 0) answer.kind = Parameters::ADD;
  });
  ReadAll(0);
  ASSERT_TRUE(progress_.WaitAll().ok());
  const size_t shard_count = partition_.ShardsOf(ServerId{0}).size();
  EXPECT_EQ(servers_[0].answer_count(), static_cast<int>(shard_count) + 1);
  EXPECT_EQ(counters().differing_replicas(), 0u);
}

TEST_F(ReadPathTest, AShardWithAWrongHashIsReadAgainInFullAndCounted) {
  ReadAll(0);
  ASSERT_TRUE(progress_.WaitAll().ok());
  std::atomic<int> answer_count = 0;
  servers_[0].set_answer([&](ParametersEntry& answer) {
    if (answer_count++ > 0) return;
    answer.kind = Parameters::ADD;
    answer.base_version = answer.version;
    ++answer.version;
    answer.published_hash = 1;
  });
  ReadAll(1);
  ASSERT_TRUE(progress_.WaitAll().ok());
  EXPECT_EQ(counters().differing_replicas(), 1u);
  const ShardId first = partition_.ShardsOf(ServerId{0})[0];
  const Segment& segment = partition_.segments(first)[0];
  EXPECT_EQ(replica_.tensor(0)[segment.offset], 3.0f + static_cast<float>(first.value));
}

TEST_F(ReadPathTest, ParametersThatArriveWhileTheWorkerComputesWaitForItsGradient) {
  ReadAll(0);
  ASSERT_TRUE(progress_.WaitAll().ok());
  const ShardId shard = partition_.ShardsOf(ServerId{0})[0];
  const float& value = replica_.tensor(0)[partition_.segments(shard)[0].offset];
  const float before = value;
  const auto codec = *MakeCodec({.id = CodecId::kFp32});
  const auto answer = [&](uint64_t step, float values, uint32_t kind) {
    std::vector<std::byte> payload(codec->MaxPayloadBytes(4096));
    codec->Encode(std::vector<float>(4096, values), RandomKeys(), payload);
    reads_.OnParameters(*links_[0], {.shard = shard,
                                     .step = Step{step},
                                     .version = Version{step},
                                     .base_version = Version{step - 1},
                                     .kind = kind,
                                     .steps_ahead = 1,
                                     .payload = ByteChain(std::move(payload))});
  };
  loop_->Run([&] {
    SendQueue& queue = links_[0]->queue();
    queue.Read(shard, Step{3});
    answer(1, 50, Parameters::FULL);
    answer(2, 60, Parameters::FULL);
    answer(3, 5, Parameters::ADD);
    EXPECT_EQ(value, before);
    EXPECT_FALSE(queue.HasPendingRead(shard)) << "the read is answered";
    reads_.ExpectAfterPush(shard, Step{4});
    reads_.MergeKept(shard);
    EXPECT_EQ(value, 65);
    EXPECT_EQ(replica_.held_version(shard), Version{3});
  });
  EXPECT_TRUE(progress_.WaitAll().ok()) << "the parameters of step 3 may be used for step 4";
  loop_->Run([&] {
    reads_.ExpectExact();
    links_[0]->queue().Read(shard, Step{4});
    answer(4, 1, Parameters::ADD);
    EXPECT_EQ(value, 66);
  });
}

TEST_F(ReadPathTest, AMalformedPayloadIsAFailureThatNamesTheServer) {
  servers_[1].set_answer(
      [](ParametersEntry& answer) { answer.payload = ByteChain(std::vector<std::byte>(2)); });
  ReadAll(0);
  const absl::Status failure = WaitForFailure();
  EXPECT_EQ(failure.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(failure.message()), HasSubstr("server 1 (in process): shard "));
}

TEST_F(ReadPathTest, WaitingNoticesAreReportedUntilTheParametersArrive) {
  std::vector<ShardId> all;
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) all.push_back(ShardId{s});
  for (FakeServer& server : servers_) server.HoldReads(all, WorkerId{1});
  ReadAll(0);
  while (report_.waiting() != "step 0: waits for worker 1 (shards 0-3)") std::this_thread::yield();
  for (FakeServer& server : servers_) server.ReleaseReads();
  ASSERT_TRUE(progress_.WaitAll().ok());
  EXPECT_EQ(report_.waiting(), "");
}

}  // namespace
}  // namespace thinwire::client
