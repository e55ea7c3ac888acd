#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/encode/residual_file.h"
#include "client/testing/fake_server.h"
#include "client/testing/in_process_transport.h"
#include "common/codec/codec.h"
#include "common/codec/sparse/index_list.h"
#include "common/time/thread_executor.h"
#include "proto/parameter_service.pb.h"
#include "proto/precision.pb.h"

namespace thinwire {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr uint32_t kExamples = 32;

std::vector<TensorShape> TwoLayers() {
  return {{"w1", {100, 80}}, {"b1", {80}}, {"w2", {80, 60}}, {"b2", {60}}};
}

// Two fake servers and one client. The test acts as the trainer.
class ClientTest : public ::testing::Test {
 protected:
  void Make(ClientOptions options) {
    options.server_count = 2;
    options.shard_size = 4096;
    options.heartbeat_interval = absl::Milliseconds(5);
    auto made = Client::Make(options, TwoLayers(), transport_, threads_);
    ASSERT_TRUE(made.ok()) << made.status();
    client_ = *std::move(made);
  }

  absl::StatusOr<Step> Join() {
    std::vector<std::span<const float>> initial(initial_.begin(), initial_.end());
    return client_->Join(initial);
  }

  static std::vector<std::vector<float>> Values(float first, float slope) {
    std::vector<std::vector<float>> values;
    for (const TensorShape& t : TwoLayers()) {
      std::vector<float>& v = values.emplace_back(t.value_count());
      for (size_t i = 0; i < v.size(); ++i) v[i] = first + slope * static_cast<float>(i % 97);
    }
    return values;
  }

  // Trains one step: passes the gradients to the client, last layer first. Returns the next step.
  absl::StatusOr<Step> Train(Step step, const std::vector<std::vector<float>>& gradients,
                             float scale = 1, float rate_factor = 1) {
    client_->BeginStep(step, kExamples, scale, rate_factor);
    if (absl::Status s = client_->WaitAll(); !s.ok()) return s;
    for (uint32_t t = gradients.size(); t-- > 0;) client_->Ready(t, gradients[t]);
    if (absl::Status s = client_->EndStep(); !s.ok()) return s;
    return client_->NextStep();
  }

  std::vector<float> Replica(uint32_t tensor) {
    const std::span<float> values = client_->replica(tensor);
    return {values.begin(), values.end()};
  }

  // Expects that each push that the servers have received contains the first value of its shard's
  // gradient, and FACTOR(step) times the second value. Returns the number of pushes.
  size_t CheckPushes(const std::vector<std::vector<float>>& gradients,
                     absl::FunctionRef<float(Step)> factor) {
    size_t push_count = 0;
    for (const auto& server : servers_) {
      for (const PushEntry& push : server->pushes()) {
        const size_t count = partition_.value_count(push.shard);
        std::vector<float> values(count);
        DecodePayload(CheckPayload(push.payload, count).value(), values);
        const Segment& segment = partition_.segments(push.shard)[0];
        const float* gradient = &gradients[segment.tensor][segment.offset];
        EXPECT_EQ(values[0], gradient[0]);
        EXPECT_EQ(values[1], factor(push.step) * gradient[1]) << push.step;
        ++push_count;
      }
    }
    return push_count;
  }

  FakeServer& ServerOf(ShardId shard) { return *servers_[partition_.server(shard).value]; }

  Partition partition_ = *Partition::Make(TwoLayers(), 4096, 2);
  std::vector<std::unique_ptr<FakeServer>> servers_ = [this] {
    std::vector<std::unique_ptr<FakeServer>> servers;
    servers.push_back(std::make_unique<FakeServer>(partition_, ServerId{0}));
    servers.push_back(std::make_unique<FakeServer>(partition_, ServerId{1}));
    return servers;
  }();
  InProcessTransport transport_{{servers_[0].get(), servers_[1].get()}};
  Threads threads_;
  std::vector<std::vector<float>> initial_ = Values(1, 0.25);
  std::unique_ptr<Client> client_;
};

// Lets each answer permit two more steps, and keeps all later answers back.
class WorksAheadTest : public ClientTest {
 protected:
  WorksAheadTest() {
    Make({.works_ahead = true});
    for (const auto& server : servers_) {
      server->set_answer([](ParametersEntry& answer) { answer.steps_ahead = 2; });
    }
    EXPECT_EQ(*Join(), Step{0});
    EXPECT_TRUE(client_->WaitAll().ok());
    std::vector<ShardId> all;
    for (uint32_t s = 0; s < partition_.shard_count(); ++s) all.push_back(ShardId{s});
    for (const auto& server : servers_) server->HoldReads(all, WorkerId{1});
  }
  void ReleaseReads() {
    for (const auto& server : servers_) server->ReleaseReads();
  }
  // Returns the values of the pushes of SHARD for STEP, and their late examples.
  std::pair<std::vector<float>, uint32_t> Pushed(ShardId shard, Step step) {
    for (const PushEntry& push : ServerOf(shard).pushes()) {
      if (push.shard != shard || push.step != step) continue;
      std::vector<float> values(partition_.value_count(shard));
      DecodePayload(CheckPayload(push.payload, values.size()).value(), values);
      return {values, push.late_examples};
    }
    ADD_FAILURE() << "no push of step " << step;
    return {};
  }
};

TEST_F(WorksAheadTest, StepsBeginBeforeTheirReadsAreAnswered) {
  for (uint64_t step = 0; step < 3; ++step) {
    EXPECT_EQ(*Train(Step{step}, Values(1, 0)), Step{step + 1});
    EXPECT_EQ(Replica(0), initial_[0]);
  }
  EXPECT_EQ(*client_->Settle(), Step{3});
  for (const auto& server : servers_) {
    for (const PushEntry& push : server->pushes()) EXPECT_EQ(push.computed_version, Version{0});
  }
  ReleaseReads();
  ASSERT_TRUE(client_->WaitAll().ok());
  EXPECT_EQ(Replica(0)[0], initial_[0][0] - 3);
  EXPECT_EQ(client_->counters().accepted_pushes(), 3 * partition_.shard_count());
}

TEST_F(WorksAheadTest, ALatePushOfAnEarlierStepReturnsItsValues) {
  const ShardId late{1};
  ServerOf(late).set_judge([=](const PushEntry& push) -> VerdictEntry {
    const bool is_late = push.shard == late && push.step == Step{1};
    return {.kind = is_late ? uint32_t{PushVerdict::LATE} : uint32_t{PushVerdict::ACCEPT},
            .frontier = Step{2}};
  });
  for (uint64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(Train(Step{step}, Values(static_cast<float>(1 << step), 0)).ok());
  }
  EXPECT_EQ(*client_->Settle(), Step{3});
  ReleaseReads();
  ASSERT_TRUE(Train(Step{3}, Values(8, 0)).ok());
  ASSERT_TRUE(client_->Settle().ok());
  uint32_t late_examples = 0;
  float sum = 0;
  for (const uint64_t step : {2, 3}) {
    const auto [values, examples] = Pushed(late, Step{step});
    sum += values[0];
    late_examples += examples;
  }
  EXPECT_EQ(sum, 2 + 4 + 8) << "the late values arrive once";
  EXPECT_EQ(late_examples, kExamples);
}

TEST_F(WorksAheadTest, ALatePushMakesTheWorkerJumpWhenItHasSettled) {
  ServerOf(ShardId{0}).set_judge([](const PushEntry&) -> VerdictEntry {
    return {.kind = PushVerdict::LATE, .frontier = Step{9}};
  });
  ASSERT_TRUE(Train(Step{0}, Values(1, 0)).ok());
  EXPECT_EQ(*client_->Settle(), Step{9});
  ReleaseReads();
  EXPECT_TRUE(client_->WaitAll().ok());
  EXPECT_EQ(*client_->Settle(), Step{9});
}

TEST_F(ClientTest, AMemberExchangesItsOwnTensors) {
  std::vector<TensorShape> tensors = TwoLayers();
  for (TensorShape& tensor : tensors) tensor.apart = true;
  const Partition whole = *Partition::Make(tensors, 4096, 2);
  FakeServer first(whole, ServerId{0}), second(whole, ServerId{1});
  FakeServer* const servers[] = {&first, &second};
  std::set<uint32_t> owned;
  for (uint32_t s = 0; s < whole.shard_count(); ++s) {
    const uint32_t tensor = whole.segments(ShardId{s})[0].tensor;
    if (tensor == 1 || tensor == 2) owned.insert(s);
    // The other member has sent its values.
    if (!owned.contains(s)) {
      servers[whole.server(ShardId{s}).value]->Seed(
          ShardId{s}, std::vector<float>(whole.value_count(ShardId{s}), 5));
    }
  }
  InProcessTransport transport({&first, &second});
  ClientOptions options = {.member = 1, .owned_tensors = {1, 2}};
  options.server_count = 2;
  options.shard_size = 4096;
  EXPECT_THAT(Client::Make(options, TwoLayers(), transport, threads_).status().message(),
              HasSubstr("only valid in a job with members above 1"));
  options.groups = {{.match = "*", .apart = true}};
  const auto client = Client::Make(options, TwoLayers(), transport, threads_).value();
  EXPECT_EQ(client->partition().tensors()[1].name, "w2");
  ASSERT_EQ(*client->Join(std::vector<std::span<const float>>{initial_[1], initial_[2]}), Step{0});
  const JoinRequest join = second.joins().back();
  EXPECT_EQ(join.member(), 1u);
  EXPECT_THAT(join.owned_tensors(), ElementsAre(1, 2));
  EXPECT_EQ(join.tensors_size(), 4);
  EXPECT_EQ(join.partition_hash(), whole.hash());
  ASSERT_TRUE(client->WaitAll().ok());
  const auto gradients = Values(0.5, 0.125);
  client->BeginStep(Step{0}, kExamples);
  client->Ready(1, gradients[2]);
  client->Ready(0, gradients[1]);
  ASSERT_TRUE(client->EndStep().ok());
  EXPECT_EQ(*client->NextStep(), Step{1});
  ASSERT_TRUE(client->WaitAll().ok());
  std::set<uint32_t> pushed;
  for (const FakeServer* server : servers) {
    for (const PushEntry& push : server->pushes()) pushed.insert(push.shard.value);
  }
  EXPECT_EQ(pushed, owned);
  const auto masters = client->masters().Read().value();
  ASSERT_EQ(masters.size(), 2u);
  for (uint32_t own = 0; own < 2; ++own) {
    for (size_t i = 0; i < masters[own].size(); ++i) {
      const float expected = initial_[own + 1][i] - gradients[own + 1][i];
      EXPECT_EQ(masters[own][i], expected);
      EXPECT_EQ(client->replica(own)[i], expected);
    }
  }
  ASSERT_TRUE(client->Leave().ok());
  EXPECT_EQ(first.last_leave().member(), 1u);
}

TEST_F(ClientTest, ParametersEqualAPlainComputation) {
  Make({});
  EXPECT_TRUE(client_->members().live().empty());
  Step step = *Join();
  EXPECT_EQ(step, Step{0});
  std::vector<std::vector<float>> expected = initial_;
  for (int i = 0; i < 5; ++i) {
    const auto gradients = Values(0.5f * i, 0.125);
    EXPECT_EQ(*Train(step, gradients), step + 1);
    ++step;
    for (size_t t = 0; t < expected.size(); ++t) {
      for (size_t v = 0; v < expected[t].size(); ++v) expected[t][v] -= gradients[t][v];
    }
  }
  ASSERT_TRUE(client_->WaitAll().ok());
  for (uint32_t t = 0; t < expected.size(); ++t) EXPECT_EQ(Replica(t), expected[t]) << t;

  const WorkerCounters counters = client_->counters();
  EXPECT_EQ(counters.accepted_pushes(), 5 * partition_.shard_count());
  EXPECT_EQ(counters.push_bytes_raw(), 5 * 4 * partition_.value_count());
  EXPECT_EQ(counters.pull_bytes_raw(), 6 * 4 * partition_.value_count());
  EXPECT_EQ(counters.push_bytes_encoded(),
            counters.push_bytes_raw() + 5 * partition_.shard_count());
  EXPECT_EQ(counters.reconnects(), 0u);
  EXPECT_EQ(servers_[0]->seed_count() + servers_[1]->seed_count(),
            static_cast<int>(partition_.shard_count()));
  ASSERT_TRUE(client_->Leave().ok());
  EXPECT_EQ(servers_[0]->leave_count(), 1);
  EXPECT_EQ(servers_[1]->leave_count(), 1);
}

TEST_F(ClientTest, TheMastersOfAllServersCanBeReadAfterLeave) {
  Make({});
  Step step = *Join();
  const auto gradients = Values(1, 0.125);
  ASSERT_TRUE(Train(step, gradients).ok());
  ASSERT_TRUE(client_->Leave().ok());
  const auto masters = client_->masters().Read();
  ASSERT_TRUE(masters.ok()) << masters.status();
  ASSERT_EQ(masters->size(), initial_.size());
  for (size_t t = 0; t < initial_.size(); ++t) {
    ASSERT_EQ((*masters)[t].size(), initial_[t].size());
    for (size_t v = 0; v < initial_[t].size(); ++v) {
      ASSERT_EQ((*masters)[t][v], initial_[t][v] - gradients[t][v]) << t << " " << v;
    }
  }
}

TEST_F(ClientTest, AWorkerIsAloneWhenNoServerReportsAnother) {
  servers_[0]->set_others({WorkerId{3}});
  servers_[1]->set_others({WorkerId{3}, WorkerId{5}});
  Make({});
  ASSERT_TRUE(Join().ok());
  ASSERT_TRUE(client_->WaitAll().ok());
  absl::Notification alone;
  std::thread waiter([&] {
    EXPECT_EQ(client_->members().WaitUntilAlone(), absl::OkStatus());
    alone.Notify();
  });
  while (client_->waiting() != "waits until workers 3, 5 have left") std::this_thread::yield();
  servers_[0]->set_others({});
  servers_[1]->set_others({WorkerId{5}});
  while (client_->waiting() != "waits until worker 5 has left") std::this_thread::yield();
  EXPECT_FALSE(alone.HasBeenNotified());
  servers_[1]->set_others({});
  waiter.join();
  EXPECT_EQ(client_->waiting(), "");
}

TEST_F(ClientTest, RefreshLiveWaitsForWorkersThatJoinedBefore) {
  Make({});
  ASSERT_TRUE(Join().ok());
  for (uint32_t other = 3; other < 8; ++other) {
    servers_[0]->set_others({WorkerId{other}});
    ASSERT_TRUE(client_->members().Refresh().ok());
    EXPECT_THAT(client_->members().live(), Contains(WorkerId{other}));
  }
}

TEST_F(ClientTest, AStopEndsTheWaitForOtherWorkers) {
  servers_[0]->set_others({WorkerId{3}});
  Make({});
  ASSERT_TRUE(Join().ok());
  std::thread stopper([&] {
    while (client_->waiting().empty()) std::this_thread::yield();
    client_->Stop();
  });
  EXPECT_TRUE(absl::IsCancelled(client_->members().WaitUntilAlone()));
  stopper.join();
}

TEST_F(ClientTest, AFailureEndsTheWaitForOtherWorkers) {
  servers_[0]->set_others({WorkerId{3}});
  Make({});
  ASSERT_TRUE(Join().ok());
  std::thread other([&] {
    while (client_->waiting().empty()) std::this_thread::yield();
    servers_[0]->Fence();
  });
  EXPECT_TRUE(absl::IsAlreadyExists(client_->members().WaitUntilAlone()));
  other.join();
}

TEST_F(ClientTest, ServersKeepTheirValuesOverInitialOnes) {
  const ShardId shard{0};
  const std::vector<float> values(partition_.value_count(shard), 7.5f);
  ServerOf(shard).Seed(shard, values);
  Make({});
  ASSERT_TRUE(Join().ok());
  ASSERT_TRUE(client_->WaitAll().ok());
  const Segment& segment = partition_.segments(shard)[0];
  EXPECT_EQ(client_->replica(segment.tensor)[segment.offset], 7.5f);
  EXPECT_EQ(servers_[0]->seed_count() + servers_[1]->seed_count(),
            static_cast<int>(partition_.shard_count()) - 1);
}

TEST_F(ClientTest, LostRepliesAndRepeatedFramesCountEachPushOnce) {
  Make({});
  Step step = *Join();
  std::vector<std::vector<float>> expected = initial_;
  for (int i = 0; i < 20; ++i) {
    transport_.LoseReplies(ServerId{static_cast<uint32_t>(i % 2)}, 1);
    transport_.RepeatFrames(ServerId{static_cast<uint32_t>(i / 2 % 2)}, 2);
    const auto gradients = Values(0.25f * i, 0.5);
    ASSERT_EQ(*Train(step, gradients), step + 1);
    ++step;
    for (size_t t = 0; t < expected.size(); ++t) {
      for (size_t v = 0; v < expected[t].size(); ++v) expected[t][v] -= gradients[t][v];
    }
  }
  ASSERT_TRUE(client_->WaitAll().ok());
  for (uint32_t t = 0; t < expected.size(); ++t) EXPECT_EQ(Replica(t), expected[t]) << t;
  EXPECT_EQ(servers_[0]->pushes().size() + servers_[1]->pushes().size(),
            20 * partition_.shard_count());
  EXPECT_GE(client_->counters().reconnects(), 20u);
  EXPECT_GE(client_->counters().repeated_pushes(), 1u);
  EXPECT_EQ(client_->counters().accepted_pushes(), 20 * partition_.shard_count());
}

TEST_F(ClientTest, AModelOfManyMessagesIsPushedInFullDespiteLosses) {
  // A matrix of twelve shards of the largest size. Each shard fills a message. The pipeline encodes
  // fewer than twelve messages ahead of the network, so it must wait for the network.
  const std::vector<TensorShape> tensors = {{"w", {12, 256, 1024}}};
  const Partition partition = *Partition::Make(tensors, 0, 1);
  FakeServer server(partition, ServerId{0});
  InProcessTransport transport({&server});
  ClientOptions options;
  options.heartbeat_interval = absl::Milliseconds(5);
  const auto client = *Client::Make(options, tensors, transport, threads_);
  const std::vector<float> ones(partition.value_count(), 1);
  const std::vector<std::span<const float>> initial = {ones};
  Step step = *client->Join(initial);
  for (int i = 0; i < 6; ++i) {
    transport.LoseReplies(ServerId{0}, i % 3);
    transport.RepeatFrames(ServerId{0}, i / 2);
    client->BeginStep(step, kExamples);
    ASSERT_TRUE(client->WaitAll().ok());
    client->Ready(0, ones);
    ASSERT_TRUE(client->EndStep().ok());
    step = *client->NextStep();
  }
  ASSERT_TRUE(client->WaitAll().ok());
  EXPECT_EQ(std::vector<float>(client->replica(0).begin(), client->replica(0).end()),
            std::vector<float>(partition.value_count(), 1 - 6));
  EXPECT_EQ(client->counters().accepted_pushes(), 6 * partition.shard_count());
}

TEST_F(ClientTest, ALatePushJumpsOnceAndItsValuesAndExamplesAreSentLater) {
  const ShardId late{1};
  for (auto& server : servers_) {
    server->set_judge([late](const PushEntry& push) -> VerdictEntry {
      if (push.step != Step{2}) return {.kind = PushVerdict::ACCEPT, .frontier = push.step + 1};
      if (push.shard == late) return {.kind = PushVerdict::LATE, .frontier = Step{5}};
      return {.kind = PushVerdict::ACCEPT,
              .frontier = push.shard == ShardId{0} ? Step{9} : Step{3}};
    });
  }
  Make({});
  Step step = *Join();
  const auto gradients = Values(1, 0.5);
  step = *Train(step, gradients);
  step = *Train(step, gradients);
  ASSERT_EQ(step, Step{2});
  step = *Train(step, gradients);
  EXPECT_EQ(step, Step{9}) << "the largest frontier of any verdict";
  step = *Train(step, gradients);
  step = *Train(step, gradients);
  EXPECT_EQ(client_->counters().late_pushes(), 1u);
  EXPECT_EQ(client_->counters().jumped_steps(), 1u);

  std::vector<PushEntry> of_late;
  for (const PushEntry& push : ServerOf(late).pushes()) {
    if (push.shard == late) of_late.push_back(push);
  }
  ASSERT_EQ(of_late.size(), 5u);
  EXPECT_EQ(of_late[3].step, Step{9});
  EXPECT_EQ(of_late[2].late_examples, 0u);
  EXPECT_EQ(of_late[3].late_examples, kExamples);
  EXPECT_EQ(of_late[4].late_examples, 0u);
  const size_t count = partition_.value_count(late);
  std::vector<float> once(count), twice(count);
  DecodePayload(CheckPayload(of_late[2].payload, count).value(), once);
  DecodePayload(CheckPayload(of_late[3].payload, count).value(), twice);
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(twice[i], 2 * once[i]) << i;
}

TEST_F(ClientTest, ALateVerdictThatArrivesTwiceReturnsTheValuesOnce) {
  for (auto& server : servers_) {
    server->set_judge([](const PushEntry& push) -> VerdictEntry {
      const PushVerdict::Kind kind = push.step == Step{0} ? PushVerdict::LATE : PushVerdict::ACCEPT;
      return {.kind = static_cast<uint32_t>(kind), .frontier = push.step + 1};
    });
  }
  transport_.RepeatFrames(ServerId{0}, 100);
  transport_.RepeatFrames(ServerId{1}, 100);
  Make({});
  const auto gradients = Values(1, 0.5);
  Step step = *Train(*Join(), gradients);
  step = *Train(step, gradients);
  ASSERT_TRUE(client_->WaitAll().ok());
  EXPECT_EQ(step, Step{2});
  for (uint32_t t = 0; t < initial_.size(); ++t) {
    EXPECT_EQ(client_->replica(t)[1], initial_[t][1] - 2 * gradients[t][1]);
  }
}

TEST_F(ClientTest, TheScaleOfAStepIsDividedOutOfItsGradients) {
  Make({});
  Step step = *Join();
  const auto gradients = Values(1, 0.5);
  for (const float scale : {0x1p16f, 1.0f, 0x1p24f}) {
    auto scaled = gradients;
    for (std::vector<float>& tensor : scaled) {
      for (float& value : tensor) value *= scale;
    }
    step = *Train(step, scaled, scale);
  }
  ASSERT_TRUE(client_->WaitAll().ok());
  for (uint32_t t = 0; t < initial_.size(); ++t) {
    EXPECT_EQ(client_->replica(t)[1], initial_[t][1] - 3 * gradients[t][1]);
  }
}

TEST_F(ClientTest, EveryPushHasTheRateFactorOfItsStep) {
  Make({});
  Step step = *Join();
  for (const float factor : {0.25f, 1.0f, 0.0f}) {
    step = *Train(step, Values(1, 0.5), 1, factor);
    size_t push_count = 0;
    for (const auto& server : servers_) {
      for (const PushEntry& push : server->pushes()) {
        if (push.step + 1 != step) continue;
        ++push_count;
        EXPECT_EQ(push.rate_factor, factor);
      }
    }
    EXPECT_GT(push_count, 0);
  }
}

TEST_F(ClientTest, AGradientThatIsNotFiniteIsPushedWithWeightZero) {
  Make({});
  Step step = *Join();
  auto gradients = Values(1, 0.5);
  gradients[2][0] = std::numeric_limits<float>::infinity();
  step = *Train(step, gradients);
  EXPECT_EQ(client_->counters().nonfinite_gradients(), 1u);
  gradients[2][0] = 1;
  step = *Train(step, gradients);
  ASSERT_TRUE(client_->WaitAll().ok());
  const Segment of_bad = {.tensor = 2, .offset = 0, .count = 1};
  EXPECT_EQ(client_->replica(of_bad.tensor)[0], initial_[2][0] - 1)
      << "the gradient that was not finite had no effect";
  EXPECT_EQ(client_->replica(0)[0], initial_[0][0] - 2 * gradients[0][0]);
}

TEST_F(ClientTest, ASilentServerIsNamedWithTheAwaitedVerdicts) {
  Make({.worker = WorkerId{2}, .silence = absl::Milliseconds(250)});
  const Step step = *Join();
  ASSERT_TRUE(client_->WaitAll().ok());
  transport_.Mute(ServerId{1}, true);
  const absl::StatusOr<Step> next = Train(step, Values(1, 0.5));
  EXPECT_EQ(next.status().code(), absl::StatusCode::kDeadlineExceeded) << next.status();
  EXPECT_THAT(std::string(next.status().message()),
              HasSubstr("server 1 (in process): silent for 0."));
  EXPECT_THAT(std::string(next.status().message()),
              HasSubstr("while worker 2 waited for the verdicts of step 0 (shard"));
  EXPECT_EQ(client_->WaitTensor(0), next.status()) << "a failure is final";
  EXPECT_EQ(client_->EndStep(), next.status());
  EXPECT_EQ(client_->Leave(), next.status());
  EXPECT_EQ(servers_[0]->leave_count(), 1) << "the other server learns of it";
  EXPECT_EQ(servers_[1]->leave_count(), 0);
}

TEST_F(ClientTest, AServerThatRefusesStreamsForTooLongIsUnavailable) {
  Make({.silence = absl::Milliseconds(250)});
  const Step step = *Join();
  ASSERT_TRUE(client_->WaitAll().ok());
  transport_.Refuse(ServerId{1}, true);
  const absl::Status status = Train(step, Values(1, 0.5)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("server 1 (in process)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("connection refused"));
}

TEST_F(ClientTest, TheClientWaitsThroughAShortOutage) {
  Make({.silence = absl::Minutes(1)});
  const Step step = *Join();
  ASSERT_TRUE(client_->WaitAll().ok());
  transport_.Refuse(ServerId{1}, true);
  absl::Notification trained;
  std::thread trainer([&] {
    EXPECT_EQ(*Train(step, Values(1, 0.5)), step + 1);
    EXPECT_TRUE(client_->WaitAll().ok());
    trained.Notify();
  });
  while (client_->counters().reconnects() < 3) std::this_thread::yield();
  EXPECT_FALSE(trained.HasBeenNotified());
  transport_.Refuse(ServerId{1}, false);
  trainer.join();
  EXPECT_EQ(client_->replica(0)[0], initial_[0][0] - 1);
}

// A transport that refuses every Join and records its timeout.
class TimeoutTransport final : public Transport {
 public:
  std::string NameOf(ServerId) const override { return "server"; }
  std::unique_ptr<FrameStream> Open(ServerId, StreamObserver&) override { return nullptr; }
  void Join(ServerId, const JoinRequest&, absl::Duration timeout, Done<JoinReply> done) override {
    join_timeout = timeout;
    const bool reachable = ++join_count > unreachable_joins;
    done(reachable ? absl::FailedPreconditionError("refused")
                   : absl::UnavailableError("connection refused"));
  }
  void Heartbeat(ServerId, const HeartbeatRequest&, absl::Duration, Done<HeartbeatReply>) override {
  }
  void Leave(ServerId, const LeaveRequest&, absl::Duration, Done<LeaveReply>) override {}
  void Masters(ServerId, const MastersRequest&, uint64_t, absl::Duration,
               Done<std::vector<MastersChunk>>) override {}

  absl::Duration join_timeout;
  int join_count = 0;
  int unreachable_joins = 0;  // the first calls, which do not reach the server
};

// The lead replies to a Join only when the lease of an earlier process of the worker ends.
TEST_F(ClientTest, AJoinMayTakeLongerThanALease) {
  TimeoutTransport transport;
  ClientOptions options;
  options.lease = absl::Minutes(5);
  auto client = Client::Make(options, TwoLayers(), transport, threads_);
  ASSERT_TRUE(client.ok()) << client.status();
  const std::vector<std::span<const float>> initial(initial_.begin(), initial_.end());
  EXPECT_EQ((*client)->Join(initial).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_GT(transport.join_timeout, options.lease);
}

TEST_F(ClientTest, AWorkerThatWaitsForServersHasNoStartTimeout) {
  const std::vector<std::span<const float>> initial(initial_.begin(), initial_.end());
  for (const bool waits : {false, true}) {
    TimeoutTransport transport;
    transport.unreachable_joins = 3;
    ClientOptions options;
    options.start_timeout = absl::Nanoseconds(1);
    options.wait_for_servers = waits;
    auto client = Client::Make(options, TwoLayers(), transport, threads_);
    ASSERT_TRUE(client.ok()) << client.status();
    EXPECT_EQ((*client)->Join(initial).status().code(),
              waits ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kUnavailable);
    EXPECT_EQ(transport.join_count, waits ? 4 : 1);
  }
}

TEST_F(ClientTest, JoinNamesTheServerThatRefuses) {
  transport_.Refuse(ServerId{1}, true);
  Make({.start_timeout = absl::Milliseconds(50)});
  const absl::Status status = Join().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("server 1 (in process)"));
}

TEST_F(ClientTest, AFailedJoinLeavesTheServersThatItJoined) {
  transport_.Refuse(ServerId{1}, true);
  Make({.start_timeout = absl::Milliseconds(1)});
  EXPECT_FALSE(Join().ok());
  EXPECT_EQ(servers_[0]->leave_count(), 1);
  EXPECT_TRUE(client_->Leave().ok()) << "no server is joined";
}

TEST_F(ClientTest, AStopEndsAJoinThatNoServerAnswers) {
  transport_.Mute(ServerId{0}, true);
  Make({});
  std::thread stopper([this] { client_->Stop(); });
  EXPECT_EQ(Join().status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(client_->Leave().ok()) << "no server is joined";
  stopper.join();
}

TEST_F(ClientTest, AStoppedWorkerSavesItsResidualsBeforeItsFirstPushOfAStep) {
  Make({.state_dir = ::testing::TempDir() + "/stopped_before_a_push",
        .drain = absl::ZeroDuration()});
  Step step = *Join();
  step = *Train(step, Values(1, 0.5));
  ASSERT_TRUE(client_->WaitAll().ok());
  std::vector<ShardId> all;
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) all.push_back(ShardId{s});
  for (auto& server : servers_) server->HoldReads(all, WorkerId{3});
  step = *Train(step, Values(1, 0.5));
  client_->BeginStep(step, kExamples);
  std::thread stopper([this] { client_->Stop(); });
  EXPECT_EQ(client_->WaitTensor(0).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(client_->WaitAll().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(client_->state().Save().ok());
  EXPECT_TRUE(client_->Leave().ok());
  EXPECT_EQ(servers_[0]->leave_count() + servers_[1]->leave_count(), 2);
  stopper.join();
}

TEST_F(ClientTest, AStopEndsAWaitForVerdictsAndTheResidualsAreNotSaved) {
  Make(
      {.state_dir = ::testing::TempDir() + "/stopped_after_a_push", .drain = absl::ZeroDuration()});
  const Step step = *Join();
  ASSERT_TRUE(client_->WaitAll().ok());
  transport_.Hold(ServerId{1}, true);
  client_->Stop();
  EXPECT_EQ(Train(step, Values(1, 0.5)).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(client_->state().Save(),
            absl::FailedPreconditionError("step 0: not all pushes have a verdict"));
  EXPECT_TRUE(client_->Leave().ok());
}

// With an ordered fold, the verdict waits for a worker that may wait to know where this one stops.
TEST_F(ClientTest, AStoppedWorkerThatAwaitsVerdictsTellsTheLeadWhereItStops) {
  Make({});
  const Step step = *Join();
  ASSERT_TRUE(client_->WaitAll().ok());
  transport_.Hold(ServerId{1}, true);
  std::thread other([&] {
    client_->Stop();
    while (servers_[0]->stops_before() != step + 1) std::this_thread::yield();
    transport_.Hold(ServerId{1}, false);
  });
  const absl::StatusOr<Step> next = Train(step, Values(1, 0.5));
  EXPECT_TRUE(next.ok()) << next.status();
  other.join();
}

TEST_F(ClientTest, AWaitForAnotherWorkerIsReported) {
  const std::vector<ShardId> held = partition_.ShardsOfTensor(0);
  for (auto& server : servers_) server->HoldReads(held, WorkerId{3});
  Make({});
  ASSERT_TRUE(Join().ok());
  ASSERT_TRUE(client_->WaitTensor(2).ok());
  ASSERT_TRUE(client_->WaitTensor(3).ok());
  // Each server holds a shard of tensor 0 and a shard of tensor 2, and answers reads in the order
  // of arrival. Before the parameters of tensor 2, a server has therefore sent a notice that the
  // read of tensor 0 must wait for worker 3. Tensor 2 has arrived, so such a notice has arrived
  // too.
  EXPECT_THAT(client_->waiting(), HasSubstr("step 0: waits for worker 3 (shard"));
  for (auto& server : servers_) server->ReleaseReads();
  EXPECT_TRUE(client_->WaitAll().ok());
  EXPECT_EQ(client_->waiting(), "");
}

TEST_F(ClientTest, AFencedWorkerStops) {
  Make({.worker = WorkerId{2}});
  const Step step = *Join();
  for (auto& server : servers_) {
    server->set_judge(
        [](const PushEntry&) -> VerdictEntry { return {.kind = PushVerdict::FENCED}; });
  }
  const absl::Status status = Train(step, Values(1, 0.5)).status();
  EXPECT_EQ(status,
            absl::AlreadyExistsError("worker 2: another process has joined under this number"));
}

TEST_F(ClientTest, AHeartbeatReportsThatAWorkerIsFenced) {
  Make({.worker = WorkerId{2}});
  std::vector<ShardId> all;
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) all.push_back(ShardId{s});
  servers_[0]->HoldReads(all, WorkerId{3});
  ASSERT_TRUE(Join().ok());
  servers_[0]->Fence();
  EXPECT_EQ(client_->WaitAll(),
            absl::AlreadyExistsError("worker 2: another process has joined under this number"));
}

TEST_F(ClientTest, AServerThatLostItsStateEndsTheClientWithItsMessage) {
  Make({.server_return = absl::Minutes(10)});
  const Step step = *Join();
  ASSERT_TRUE(client_->WaitAll().ok());
  servers_[1]->Restart(/*keep_state=*/false);
  EXPECT_EQ(Train(step, Values(1, 0.5)).status(),
            absl::AbortedError("server 1 (in process): server 1 lost its state"));
}

TEST_F(ClientTest, ServersThatKeptTheirStateAreJoinedAgainAtAnyMoment) {
  Make({.server_return = absl::Minutes(10)});
  Step step = *Join();
  std::vector<std::vector<float>> expected = initial_;
  constexpr uint32_t kSteps = 18;
  for (uint32_t i = 0; i < kSteps; ++i) {
    FakeServer& server = *servers_[i % 2];
    const auto restart = [&, breaks = i % 4 < 2] {
      server.Restart(/*keep_state=*/true);
      if (breaks) transport_.DropStreams(ServerId{i % 2});
    };
    const auto gradients = Values(0.25f * i, 0.5);
    client_->BeginStep(step, kExamples);
    if (i % 3 == 0) restart();  // while the worker waits for parameters
    ASSERT_TRUE(client_->WaitAll().ok());
    if (i % 3 == 1) restart();  // while the worker computes
    for (uint32_t t = gradients.size(); t-- > 0;) client_->Ready(t, gradients[t]);
    if (i % 3 == 2) restart();  // while pushes are encoded and sent
    ASSERT_TRUE(client_->EndStep().ok());
    ASSERT_EQ(*client_->NextStep(), step + 1) << "the step stays";
    ++step;
    for (size_t t = 0; t < expected.size(); ++t) {
      for (size_t v = 0; v < expected[t].size(); ++v) expected[t][v] -= gradients[t][v];
    }
    while (client_->counters().rejoins() < i + 1) std::this_thread::yield();
  }
  ASSERT_TRUE(client_->WaitAll().ok());
  for (uint32_t t = 0; t < expected.size(); ++t) EXPECT_EQ(Replica(t), expected[t]) << t;
  EXPECT_EQ(client_->counters().rejoins(), kSteps);
  EXPECT_EQ(client_->counters().accepted_pushes(), kSteps * partition_.shard_count());
  for (const auto& server : servers_) {
    for (const JoinRequest& join : server->joins()) {
      EXPECT_NE(join.initial_hash(), 0u);
      EXPECT_EQ(join.tensors_size(), 4);
    }
  }
  EXPECT_TRUE(client_->Leave().ok());
}

// The gradient has more bytes than the client encodes ahead of the network.
TEST_F(ClientTest, AServerThatIsAwayDuringEndStepGetsTheWholeGradientAfterItsReturn) {
  const std::vector<TensorShape> tensors = {{"w", {12, 256, 1024}}};
  const Partition partition = *Partition::Make(tensors, 0, 1);
  FakeServer server(partition, ServerId{0});
  InProcessTransport transport({&server});
  ClientOptions options;
  options.heartbeat_interval = absl::Milliseconds(5);
  options.server_return = absl::Minutes(10);
  const auto client = *Client::Make(options, tensors, transport, threads_);
  const std::vector<float> ones(partition.value_count(), 1);
  const std::vector<std::span<const float>> initial = {ones};
  const Step step = *client->Join(initial);
  ASSERT_TRUE(client->WaitAll().ok());
  transport.Refuse(ServerId{0}, true);
  client->BeginStep(step, kExamples);
  client->Ready(0, ones);
  while (client->counters().reconnects() < 3) std::this_thread::yield();
  server.Restart(/*keep_state=*/true);
  transport.Refuse(ServerId{0}, false);
  EXPECT_TRUE(client->EndStep().ok());
  EXPECT_EQ(*client->NextStep(), step + 1);
  EXPECT_EQ(client->counters().rejoins(), 1u);
  EXPECT_EQ(server.pushes().size(), partition.shard_count());
}

TEST_F(ClientTest, AStopEndsTheWaitForAServer) {
  Make({.server_return = absl::Minutes(10), .drain = absl::ZeroDuration()});
  const Step step = *Join();
  ASSERT_TRUE(client_->WaitAll().ok());
  transport_.Refuse(ServerId{1}, true);
  std::thread stopper([this] {
    while (!absl::StrContains(client_->waiting(), "waiting for server 1")) {
      std::this_thread::yield();
    }
    client_->Stop();
  });
  EXPECT_EQ(Train(step, Values(1, 0.5)).status().code(), absl::StatusCode::kCancelled);
  stopper.join();
  EXPECT_EQ(client_->Leave().code(), absl::StatusCode::kUnavailable) << "called once";
  EXPECT_EQ(servers_[0]->leave_count(), 1);
}

TEST_F(ClientTest, AReplyToJoinMayArriveAfterTheClientIsDestroyed) {
  Make({});
  ASSERT_TRUE(Join().ok());
  ASSERT_TRUE(client_->WaitAll().ok());
  servers_[0]->HoldJoins(true);
  servers_[0]->Restart(/*keep_state=*/true);
  while (servers_[0]->joins().size() < 2) std::this_thread::yield();
  client_.reset();
  servers_[0]->HoldJoins(false);
  absl::Notification answered;
  transport_.Join(ServerId{0}, JoinRequest(), absl::Minutes(1),
                  [&](const absl::StatusOr<JoinReply>&) { answered.Notify(); });
  answered.WaitForNotification();
}

TEST_F(ClientTest, LeaveInformsTheOtherServersBeforeItReportsAnUnreachableOne) {
  Make({.silence = absl::Milliseconds(250)});
  ASSERT_TRUE(Join().ok());
  ASSERT_TRUE(client_->WaitAll().ok());
  transport_.Refuse(ServerId{0}, true);
  const absl::Status status = client_->Leave();
  EXPECT_THAT(std::string(status.message()), HasSubstr("server 0 (in process)"));
  EXPECT_EQ(servers_[1]->leave_count(), 1);
}

// Clipping needs the norm of the whole gradient, so the client encodes the first shard only when
// the last tensor is ready.
TEST_F(ClientTest, AClippedGradientHasTheNormOfOneWorkersLimit) {
  ClientOptions options;
  options.gradient_clip = 3;
  options.worker_count = 4;
  Make(options);
  const Step step = *Join();
  const auto gradients = Values(0.5f, 0.125);
  ASSERT_TRUE(Train(step, gradients).ok());
  ASSERT_TRUE(client_->WaitAll().ok());
  double squares = 0;
  for (const std::vector<float>& tensor : gradients) {
    for (const float g : tensor) squares += double{g} * double{g};
  }
  const auto factor = static_cast<float>(3 / std::sqrt(4.0) / std::sqrt(squares));
  for (uint32_t t = 0; t < gradients.size(); ++t) {
    for (size_t i = 0; i < gradients[t].size(); ++i) {
      ASSERT_FLOAT_EQ(Replica(t)[i], initial_[t][i] - factor * gradients[t][i]);
    }
  }
}

TEST_F(ClientTest, IfTheNormIsNotFiniteNoValueIsSent) {
  ClientOptions options;
  options.gradient_clip = 3;
  Make(options);
  const Step step = *Join();
  auto gradients = Values(0.5f, 0.125);
  gradients[2][5] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(Train(step, gradients).ok());
  ASSERT_TRUE(client_->WaitAll().ok());
  EXPECT_EQ(client_->counters().nonfinite_gradients(), partition_.shard_count());
  for (uint32_t t = 0; t < initial_.size(); ++t) EXPECT_EQ(Replica(t), initial_[t]);
}

TEST_F(ClientTest, AChosenPushCodecIsReportedWithItsReason) {
  ClientOptions options;
  options.choose = ChoiceRule::kFastest;
  options.candidates = {{.id = CodecId::kBf16}, {.id = CodecId::kFp8E5m2}};
  Make(options);
  Step step = *Join();
  const auto begun = client_->choices();
  ASSERT_EQ(begun.size(), 2u);
  EXPECT_EQ(begun[0], (GroupCodec{"matrices", "fp32", "nothing measured yet"}));
  EXPECT_EQ(begun[1].group, "vectors");
  for (int i = 0; i < 3; ++i) step = *Train(step, Values(0.5f, 0.125));
  const auto chosen = client_->choices();
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_THAT(chosen[0].reason, HasSubstr("MB/s: " + chosen[0].codec + " "));
  for (const char* codec : {"fp32", "bf16", "fp8_e5m2"}) {
    EXPECT_THAT(chosen[0].reason, HasSubstr(codec));
  }
  // The last push to the server used the codec that the client chose for the group of the push's
  // tensor.
  const PushEntry last = ServerOf(ShardId{0}).pushes().back();
  const bool vector =
      partition_.tensors()[partition_.segments(last.shard)[0].tensor].shape.size() < 2;
  const auto payload = CheckPayload(last.payload, partition_.value_count(last.shard)).value();
  EXPECT_EQ(CodecName(PayloadCodec(payload)), chosen[vector ? 1 : 0].codec);
  EXPECT_TRUE(client_->Leave().ok());
}

TEST_F(ClientTest, OptionsOutOfRangeAreRefused) {
  const auto error = [&](const ClientOptions& options) {
    return std::string(Client::Make(options, TwoLayers(), transport_, threads_).status().message());
  };
  ClientOptions clip;
  clip.gradient_clip = -1;
  EXPECT_EQ(error(clip),
            "gradient_clip: out of range (expected 0 to 3.4e38, the largest float, got -1)");
  ClientOptions correction;
  correction.correction.momentum = 1;
  EXPECT_EQ(error(correction),
            "correction_momentum: out of range (expected at least 0 and below 1, got 1)");
  ClientOptions warmup;
  warmup.warmup.density.part = 0.5;
  EXPECT_THAT(error(warmup), HasSubstr("(expected planned steps, got 0)"));
}

TEST_F(ClientTest, InvalidPartitionsAndCodecsAreRefused) {
  EXPECT_FALSE(Client::Make({}, {}, transport_, threads_).ok());
  EXPECT_FALSE(Client::Make({.server_count = 0}, TwoLayers(), transport_, threads_).ok());
  EXPECT_FALSE(Client::Make({.pull = CodecId::kTopK}, TwoLayers(), transport_, threads_).ok());
  EXPECT_FALSE(Client::Make({.push = {.id = CodecId::kTopK, .density = 0}}, TwoLayers(), transport_,
                            threads_)
                   .ok());
  EXPECT_EQ(Client::Make({.shard_size = 4096, .fragments = 9}, TwoLayers(), transport_, threads_)
                .status()
                .message(),
            "fragments: out of range (expected 1 to 5, the number of the model's shards, which a "
            "smaller shard_size increases, got 9)");
  EXPECT_EQ(
      Client::Make({.groups = {{.optimizer = {.kind = OptimizerKind::kLamb}}}, .fragments = 2},
                   {{"w", {512, 513}}}, transport_, threads_)
          .status()
          .message(),
      "fragments: not possible with optimizer lars or lamb and a tensor of more than 262144 "
      "values (expected 1, got 2 with tensor \"w\")");
  Make({});
  EXPECT_EQ(client_->Join({}).status().code(), absl::StatusCode::kInvalidArgument);
}

// The parameters of a fragment arrive while the gradient of the next one does not exist yet.
TEST_F(ClientTest, FragmentsAreExchangedOneAfterTheOther) {
  Make({.fragments = 3});
  ASSERT_EQ(*Join(), Step{0});
  ASSERT_TRUE(client_->WaitAll().ok());
  std::vector<std::vector<float>> values = Values(1, 0);
  const std::vector<std::span<float>> tensors(values.begin(), values.end());
  for (Step step; step < Step{2}; ++step) {
    client_->BeginStep(step, kExamples);
    for (uint32_t f = 0; f < 3; ++f) {
      client_->fragments().Ready(f, tensors);
      ASSERT_TRUE(client_->fragments().Wait(f).ok());
      size_t received = 0;
      for (const auto& server : servers_) {
        for (const PushEntry& push : server->pushes()) received += push.step == step ? 1 : 0;
      }
      size_t expected = 0;
      for (uint32_t g = 0; g <= f; ++g) expected += client_->fragments().shards()[g].size();
      EXPECT_EQ(received, expected);
      for (const ShardId shard : client_->fragments().shards()[f]) {
        const Segment& segment = partition_.segments(shard)[0];
        const float initial = initial_[segment.tensor][segment.offset];
        EXPECT_EQ(Replica(segment.tensor)[segment.offset],
                  initial - static_cast<float>(step.value) - 1);
      }
    }
    ASSERT_TRUE(client_->EndStep().ok());
    EXPECT_EQ(*client_->NextStep(), step + 1);
  }
  EXPECT_TRUE(client_->Leave().ok());
}

// Two servers of a job with rounds, whose checkpoints a test chooses.
class RollbackTest : public ClientTest {
 protected:
  RollbackTest() {
    for (const auto& server : servers_) server->set_by_round();
  }

  void SaveCheckpoint() {
    for (const auto& server : servers_) server->SaveCheckpoint();
  }
  void RollBack(uint64_t generation) {
    for (const auto& server : servers_) server->RollBack(Generation{generation});
  }
  // Rolls back and blocks until the client has noticed.
  void RollBackAndWait(uint64_t generation) {
    RollBack(generation);
    while (!client_->rolled_back()) std::this_thread::yield();
  }
  void HoldReads() {
    std::vector<ShardId> all;
    for (uint32_t s = 0; s < partition_.shard_count(); ++s) all.push_back(ShardId{s});
    for (const auto& server : servers_) server->HoldReads(all, WorkerId{3});
  }

  static std::vector<std::vector<float>> GradientOf(Step step) {
    return Values(0.25f * static_cast<float>(step.value), 0.5);
  }
  // Trains from FIRST until END.
  void TrainUntil(Step first, Step end) {
    for (Step step = first; step < end; ++step) {
      ASSERT_EQ(*Train(step, GradientOf(step)), step + 1);
    }
  }
  // Joins and trains until the step 4. The checkpoint is of step 2.
  void TrainToStepFour() {
    Make({.server_return = absl::Minutes(10)});
    ASSERT_EQ(*Join(), Step{0});
    TrainUntil(Step{0}, Step{2});
    SaveCheckpoint();
    TrainUntil(Step{2}, Step{4});
    ASSERT_TRUE(client_->WaitAll().ok());
  }
  // Expects that the replica has the parameters of STEP: every step before it counts once.
  void ExpectParametersOf(Step step) {
    ASSERT_TRUE(client_->WaitAll().ok());
    std::vector<std::vector<float>> expected = initial_;
    for (Step s; s < step; ++s) {
      const auto gradients = GradientOf(s);
      for (size_t t = 0; t < expected.size(); ++t) {
        for (size_t v = 0; v < expected[t].size(); ++v) expected[t][v] -= gradients[t][v];
      }
    }
    for (uint32_t t = 0; t < expected.size(); ++t) EXPECT_EQ(Replica(t), expected[t]) << t;
  }
  // Follows the rollback to step 2, trains until step 6, and expects the parameters of a job
  // without a rollback.
  void FollowToStepSix(uint64_t repeated_steps) {
    EXPECT_TRUE(client_->rolled_back());
    const float* const address = client_->replica(0).data();
    ASSERT_EQ(*Join(), Step{2});
    EXPECT_FALSE(client_->rolled_back());
    EXPECT_EQ(client_->replica(0).data(), address);
    TrainUntil(Step{2}, Step{6});
    ExpectParametersOf(Step{6});
    EXPECT_EQ(client_->counters().rollbacks(), 1u);
    EXPECT_EQ(client_->counters().repeated_steps(), repeated_steps);
    EXPECT_TRUE(client_->Leave().ok());
  }

  const absl::Status rolled_back_ =
      absl::AbortedError("the servers continue from an earlier step (generation 2)");
};

TEST_F(RollbackTest, AGenerationHasTheCodecThatTheLeadNames) {
  ClientOptions options = {.server_return = absl::Minutes(10)};
  options.arms = {{.codec = {.id = CodecId::kFp32}}, {.codec = {.id = CodecId::kInt8}}};
  Make(options);
  const auto codecs = [&] {
    std::set<CodecId> codecs;
    for (const auto& server : servers_) {
      for (const PushEntry& push : server->pushes()) {
        if (partition_.HoldsVectors(push.shard)) continue;
        const size_t count = partition_.value_count(push.shard);
        codecs.insert(CheckPayload(push.payload, count).value().codec());
      }
    }
    return codecs;
  };
  servers_[0]->set_push_candidate(0, Step{0});
  ASSERT_EQ(*Join(), Step{0});
  EXPECT_EQ(client_->trials().first_step(), Step{0});
  SaveCheckpoint();
  ASSERT_EQ(*Train(Step{0}, GradientOf(Step{0})), Step{1});
  EXPECT_THAT(codecs(), ElementsAre(CodecId::kFp32));
  EXPECT_EQ(client_->trials().StopErrorMeasurement(), std::nullopt);
  client_->trials().StartErrorMeasurement();
  EXPECT_EQ(client_->trials().StopErrorMeasurement(), 0.0) << "no pushes";
  client_->trials().StartErrorMeasurement();
  PrecisionTest test;
  test.set_step(1);
  test.set_accuracy(0.5);
  client_->trials().Report(test);
  ASSERT_TRUE(client_->members().Refresh().ok());
  ASSERT_EQ(servers_[0]->tests().size(), 1u);
  EXPECT_EQ(servers_[0]->tests()[0].accuracy(), 0.5);
  EXPECT_TRUE(servers_[1]->tests().empty()) << "only the lead gets tests";

  servers_[0]->set_push_candidate(1, std::nullopt);
  RollBackAndWait(2);
  ASSERT_EQ(*Join(), Step{0});
  EXPECT_EQ(client_->trials().first_step(), std::nullopt);
  EXPECT_EQ(client_->trials().StopErrorMeasurement(), std::nullopt) << "another generation";
  client_->trials().StartErrorMeasurement();
  ASSERT_EQ(*Train(Step{0}, GradientOf(Step{0})), Step{1});
  EXPECT_THAT(codecs(), Contains(CodecId::kInt8));
  EXPECT_GT(client_->trials().StopErrorMeasurement(), 0.0);
  ASSERT_TRUE(client_->members().Refresh().ok());
  EXPECT_TRUE(servers_[0]->tests().empty()) << "they belong to the former generation";

  servers_[0]->set_push_candidate(2, std::nullopt);
  RollBackAndWait(3);
  EXPECT_THAT(std::string(Join().status().message()),
              HasSubstr("push_candidates: expected 3 numbers below 2, got [2 2 2]"));
}

TEST_F(RollbackTest, AHeartbeatHasTheNewestTestOfItsGeneration) {
  TrainToStepFour();
  ModelTest test;
  for (const uint64_t step : {3, 4}) {
    test.set_step(step);
    test.set_loss(0.5);
    client_->members().ReportTest(test);
  }
  ASSERT_TRUE(client_->members().Refresh().ok());
  ASSERT_TRUE(servers_[0]->model_test().has_value());
  EXPECT_EQ(servers_[0]->model_test()->SerializeAsString(), test.SerializeAsString());
  EXPECT_FALSE(servers_[1]->model_test().has_value()) << "only the lead gets tests";
  RollBackAndWait(2);
  ASSERT_EQ(*Join(), Step{2});
  ASSERT_TRUE(client_->members().Refresh().ok());
  EXPECT_FALSE(servers_[0]->model_test().has_value()) << "its step is repeated";
}

TEST_F(RollbackTest, AHeartbeatToTheLeadHasTheWorkersProgress) {
  TrainToStepFour();
  ASSERT_TRUE(client_->members().Refresh().ok());
  EXPECT_FALSE(servers_[0]->progress().has_value());
  WorkerProgress progress;
  progress.set_planned_steps(100);
  client_->members().ReportProgress(progress);
  ASSERT_TRUE(client_->members().Refresh().ok());
  ASSERT_TRUE(servers_[0]->progress().has_value());
  EXPECT_EQ(servers_[0]->progress()->planned_steps(), 100u);
  EXPECT_FALSE(servers_[1]->progress().has_value()) << "only the lead gets it";
}

TEST_F(RollbackTest, ARollbackEndsTheWaitForParameters) {
  TrainToStepFour();
  HoldReads();
  ASSERT_EQ(*Train(Step{4}, GradientOf(Step{4})), Step{5});
  client_->BeginStep(Step{5}, kExamples);
  std::thread other([this] { RollBack(2); });
  EXPECT_EQ(client_->WaitTensor(0), rolled_back_);
  EXPECT_EQ(client_->WaitAll(), rolled_back_);
  other.join();
  for (const auto& server : servers_) server->ReleaseReads();
  FollowToStepSix(3);
}

TEST_F(RollbackTest, ARollbackWhileTheWorkerComputesEndsItsStep) {
  TrainToStepFour();
  client_->BeginStep(Step{4}, kExamples);
  RollBackAndWait(2);
  const auto gradients = GradientOf(Step{4});
  for (uint32_t t = gradients.size(); t-- > 0;) client_->Ready(t, gradients[t]);
  EXPECT_EQ(client_->EndStep(), rolled_back_);
  EXPECT_EQ(client_->NextStep().status(), rolled_back_);
  FollowToStepSix(2);
}

TEST_F(RollbackTest, ARollbackDuringEncodingDropsTheStepsPushes) {
  TrainToStepFour();
  const auto gradients = GradientOf(Step{4});
  client_->BeginStep(Step{4}, kExamples);
  client_->Ready(3, gradients[3]);
  client_->Ready(2, gradients[2]);
  RollBackAndWait(2);
  client_->Ready(1, gradients[1]);
  client_->Ready(0, gradients[0]);
  EXPECT_EQ(client_->EndStep(), rolled_back_);
  FollowToStepSix(2);
}

TEST_F(RollbackTest, ARollbackEndsTheWaitForVerdicts) {
  TrainToStepFour();
  transport_.Hold(ServerId{1}, true);
  std::thread other([this] {
    while (servers_[1]->pushes().size() < 5 * partition_.ShardsOf(ServerId{1}).size()) {
      std::this_thread::yield();
    }
    RollBack(2);
  });
  EXPECT_EQ(Train(Step{4}, GradientOf(Step{4})).status(), rolled_back_);
  other.join();
  transport_.Hold(ServerId{1}, false);
  FollowToStepSix(2);
}

TEST_F(RollbackTest, ARollbackBetweenTwoStepsIsFollowed) {
  TrainToStepFour();
  RollBackAndWait(2);
  FollowToStepSix(2);
}

TEST_F(RollbackTest, ARollbackEndsTheWaitForOtherWorkers) {
  for (const auto& server : servers_) server->set_others({WorkerId{3}});
  TrainToStepFour();
  std::thread other([this] {
    while (client_->waiting().empty()) std::this_thread::yield();
    RollBack(2);
  });
  EXPECT_EQ(client_->members().WaitUntilAlone(), rolled_back_);
  other.join();
  FollowToStepSix(2);
}

// The gradient has more bytes than the client encodes ahead of the network.
TEST_F(RollbackTest, ARollbackEndsTheWaitForEncoding) {
  const std::vector<TensorShape> tensors = {{"w", {12, 256, 1024}}};
  const Partition partition = *Partition::Make(tensors, 0, 1);
  FakeServer server(partition, ServerId{0});
  server.set_by_round();
  InProcessTransport transport({&server});
  ClientOptions options;
  options.heartbeat_interval = absl::Milliseconds(5);
  options.server_return = absl::Minutes(10);
  const auto client = *Client::Make(options, tensors, transport, threads_);
  const std::vector<float> ones(partition.value_count(), 1);
  const std::vector<std::span<const float>> initial = {ones};
  const Step step = *client->Join(initial);
  ASSERT_TRUE(client->WaitAll().ok());
  server.SaveCheckpoint();
  transport.Refuse(ServerId{0}, true);
  client->BeginStep(step, kExamples);
  client->Ready(0, ones);
  std::thread other([&] {
    while (client->counters().reconnects() < 3) std::this_thread::yield();
    server.RollBack(Generation{2});
    transport.Refuse(ServerId{0}, false);
  });
  EXPECT_EQ(client->EndStep(), rolled_back_);
  other.join();
  ASSERT_EQ(*client->Join(initial), step);
  client->BeginStep(step, kExamples);
  ASSERT_TRUE(client->WaitAll().ok());
  client->Ready(0, ones);
  ASSERT_TRUE(client->EndStep().ok());
  EXPECT_EQ(*client->NextStep(), step + 1);
  EXPECT_EQ(server.masters(ShardId{0})[0], 0);
  EXPECT_EQ(client->counters().repeated_steps(), 0u) << "no step was finished";
}

TEST_F(RollbackTest, AProcessKeepsItsIncarnationAndItsRun) {
  TrainToStepFour();
  RollBackAndWait(2);
  FollowToStepSix(2);
  for (const auto& server : servers_) {
    const std::vector<JoinRequest> joins = server->joins();
    ASSERT_EQ(joins.size(), 2u);
    EXPECT_EQ(joins[1].incarnation(), 1u);
    EXPECT_EQ(joins[1].run(), 1u);
    EXPECT_EQ(joins[1].initial_hash(), joins[0].initial_hash());
  }
}

// A worker whose first step lies after the checkpoint is new to the servers.
TEST_F(RollbackTest, AProcessWhoseIncarnationIsForgottenJoinsAsANewOne) {
  TrainToStepFour();
  RollBackAndWait(2);
  servers_[0]->FailJoins({absl::NotFoundError("server 0 has not assigned it")});
  EXPECT_EQ(*Join(), Step{2});
  EXPECT_EQ(servers_[0]->joins().back().incarnation(), 0u);
  EXPECT_EQ(servers_[0]->joins().back().run(), 1u) << "no other run is joined";
}

TEST_F(RollbackTest, TwoRollbacksInARowAreFollowed) {
  TrainToStepFour();
  RollBackAndWait(2);
  ASSERT_EQ(*Join(), Step{2});
  RollBackAndWait(3);
  EXPECT_EQ(client_->WaitAll(), absl::AbortedError("the servers continue from an earlier step "
                                                   "(generation 3)"));
  ASSERT_EQ(*Join(), Step{2});
  TrainUntil(Step{2}, Step{6});
  ExpectParametersOf(Step{6});
  EXPECT_EQ(client_->counters().rollbacks(), 2u);
  EXPECT_EQ(client_->counters().repeated_steps(), 2u);
}

TEST_F(RollbackTest, AServerThatAwaitsItsRollbackIsCalledAgain) {
  TrainToStepFour();
  RollBackAndWait(2);
  servers_[1]->FailJoins(
      {absl::UnavailableError("waits for server 0"), absl::UnavailableError("waits for server 0")});
  FollowToStepSix(2);
  EXPECT_EQ(servers_[0]->joins().size(), 2u);
  EXPECT_EQ(servers_[1]->joins().size(), 4u);
}

TEST_F(RollbackTest, AServerThatContinuesLaterThanTheLeadIsAwaited) {
  TrainToStepFour();
  servers_[0]->RollBack(Generation{2});
  while (!client_->rolled_back()) std::this_thread::yield();
  std::thread other([this] {
    while (servers_[1]->joins().size() < 3) std::this_thread::yield();
    servers_[1]->RollBack(Generation{2});
  });
  FollowToStepSix(2);
  other.join();
  EXPECT_EQ(servers_[0]->leave_count(), 1) << "only at the end";
}

TEST_F(RollbackTest, ALeadThatContinuesLaterThanAnotherServerIsAwaited) {
  TrainToStepFour();
  servers_[1]->RollBack(Generation{2});
  while (!client_->rolled_back()) std::this_thread::yield();
  std::thread other([this] {
    while (servers_[0]->joins().size() < 3) std::this_thread::yield();
    servers_[0]->RollBack(Generation{2});
  });
  FollowToStepSix(2);
  other.join();
}

TEST_F(RollbackTest, AStopEndsTheJoinAfterARollback) {
  TrainToStepFour();
  RollBackAndWait(2);
  servers_[1]->FailJoins(std::deque<absl::Status>(1000, absl::UnavailableError("waits")));
  std::thread stopper([this] {
    while (servers_[1]->joins().size() < 3) std::this_thread::yield();
    client_->Stop();
  });
  EXPECT_EQ(Join().status().code(), absl::StatusCode::kCancelled);
  stopper.join();
  EXPECT_FALSE(client_->rolled_back()) << "this Join was the last one";
  EXPECT_EQ(client_->WaitAll().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(client_->Leave().code(), absl::StatusCode::kCancelled);
  EXPECT_GE(servers_[1]->leave_count(), 1) << "the other workers do not wait for the lease";
}

TEST_F(RollbackTest, AJoinThatIsRefusedAfterARollbackIsAFailure) {
  TrainToStepFour();
  RollBackAndWait(2);
  servers_[0]->FailJoins({absl::FailedPreconditionError("a newer process has this number"),
                          absl::AlreadyExistsError("worker 0: is in use")});
  const absl::Status refused =
      absl::AlreadyExistsError("server 0 (in process): worker 0: is in use");
  EXPECT_EQ(Join().status(), refused);
  EXPECT_FALSE(client_->rolled_back());
  EXPECT_EQ(client_->WaitAll(), refused);
}

TEST_F(RollbackTest, JoinIsCalledAgainOnlyAfterARollback) {
  TrainToStepFour();
  EXPECT_EQ(Join().status(), absl::FailedPreconditionError("Join: called twice"));
  EXPECT_TRUE(client_->WaitAll().ok()) << "the client goes on";
}

// A worker with a lossy codec, whose state is saved. In the tests about mass, every produced value
// is applied by a server, in a residual, or dropped.
class StateTest : public RollbackTest {
 protected:
  using Tensors = std::vector<std::vector<float>>;

  // The matrices' shards. The shard of the vectors is pushed in fp32 and has no residual.
  static constexpr uint64_t kLossyShards = 4;

  StateTest() { std::filesystem::remove_all(dir_); }

  void MakeLossy(bool saves) {
    ClientOptions options;
    options.push = {.id = CodecId::kTopK, .density = 0.1};
    options.server_return = absl::Minutes(10);
    if (saves) options.state_dir = dir_;
    Make(options);
  }
  std::string PathOf(uint64_t step) const {
    return absl::StrCat(dir_, "/worker-0/residuals-", step);
  }
  std::string LivePath() const { return dir_ + "/worker-0/live"; }
  // Returns the names of the files with saved states in the worker's folder.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_ + "/worker-0")) {
      const std::string name = entry.path().filename();
      if (absl::StartsWith(name, "residuals-")) names.push_back(name);
    }
    return names;
  }

  // Adds FACTOR * ADDED to SUM.
  static void Add(Tensors& sum, float factor, const Tensors& added) {
    for (size_t t = 0; t < sum.size(); ++t) {
      for (size_t v = 0; v < sum[t].size(); ++v) sum[t][v] += factor * added[t][v];
    }
  }
  // Returns the residuals in the file of STEP.
  Tensors ResidualsOf(uint64_t step) const {
    Tensors tensors = Values(0, 0);
    const auto saved =
        client::ReadResiduals(PathOf(step), {.job = ClientOptions().job}, partition_);
    EXPECT_TRUE(saved.ok()) << saved.status();
    if (!saved.ok()) return tensors;
    for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
      const std::vector<float>& residual = saved->shards[s].residual;
      size_t next = 0;
      for (const Segment& segment : partition_.segments(ShardId{s})) {
        for (uint64_t i = 0; i < segment.count && !residual.empty(); ++i) {
          tensors[segment.tensor][segment.offset + i] = residual[next++];
        }
      }
    }
    return tensors;
  }
  // Expects that the gradients of STEPS are equal to the values that are applied in MASTERS, the
  // residuals in the file of STEP and DROPPED together.
  void ExpectMass(const std::vector<uint64_t>& steps, const Tensors& masters, uint64_t step,
                  const Tensors& dropped) {
    Tensors missing = dropped;
    Add(missing, 1, ResidualsOf(step));
    Add(missing, 1, initial_);
    Add(missing, -1, masters);
    for (const uint64_t s : steps) Add(missing, -1, GradientOf(Step{s}));
    size_t checked_count = 0;
    for (const std::vector<float>& tensor : missing) {
      for (const float value : tensor) {
        ASSERT_NEAR(value, 0, 1e-3);
        ++checked_count;
      }
    }
    EXPECT_EQ(checked_count, partition_.value_count());
  }
  // Saves the state before STEP, the next step, and expects the mass of the gradients of STEPS.
  void ExpectConserved(const std::vector<uint64_t>& steps, uint64_t step, const Tensors& dropped) {
    ASSERT_TRUE(client_->WaitAll().ok());
    ASSERT_TRUE(client_->state().Save().ok());
    ExpectMass(steps, *client_->masters().Read(), step, dropped);
  }

  const Tensors nothing_ = Values(0, 0);
  const std::string dir_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(StateTest, AfterARollbackTheResidualsOfItsStepAreRestored) {
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{0});
  TrainUntil(Step{0}, Step{2});
  ASSERT_TRUE(client_->state().Save().ok());
  SaveCheckpoint();
  TrainUntil(Step{2}, Step{4});
  ASSERT_TRUE(client_->state().Save().ok());
  RollBackAndWait(2);
  ASSERT_EQ(*Join(), Step{2});
  EXPECT_THAT(client_->state().restored(), HasSubstr("residuals-2: saved before step 2, restored"));
  EXPECT_THAT(Names(), ElementsAre("residuals-2")) << "later states belong to lost steps";
  TrainUntil(Step{2}, Step{6});
  ExpectConserved({0, 1, 2, 3, 4, 5}, 6, nothing_);
  EXPECT_EQ(client_->counters().dropped_residuals(), 0u);
}

TEST_F(StateTest, AfterARollbackToAStepWithoutASavedStateTheResidualsAreDropped) {
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{0});
  TrainUntil(Step{0}, Step{2});
  ASSERT_TRUE(client_->state().Save().ok());
  const Tensors dropped = ResidualsOf(2);
  std::filesystem::remove(PathOf(2));
  SaveCheckpoint();
  TrainUntil(Step{2}, Step{4});
  RollBackAndWait(2);
  ASSERT_EQ(*Join(), Step{2});
  EXPECT_EQ(client_->counters().dropped_residuals(), kLossyShards);
  EXPECT_EQ(client_->state().restored(),
            dir_ + "/worker-0: no file yet; the residuals of 4 shards are dropped");
  TrainUntil(Step{2}, Step{6});
  ExpectConserved({0, 1, 2, 3, 4, 5}, 6, dropped);
}

TEST_F(StateTest, WithoutAFolderARollbackDropsTheResiduals) {
  MakeLossy(/*saves=*/false);
  ASSERT_EQ(*Join(), Step{0});
  TrainUntil(Step{0}, Step{2});
  SaveCheckpoint();
  RollBackAndWait(2);
  ASSERT_EQ(*Join(), Step{2});
  EXPECT_EQ(client_->counters().dropped_residuals(), kLossyShards);
  EXPECT_FALSE(client_->state().IsDue());
  EXPECT_TRUE(client_->state().Save().ok()) << "does nothing";
}

TEST_F(StateTest, ANewProcessRestoresTheResidualsOfItsNextStep) {
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{0});
  TrainUntil(Step{0}, Step{2});
  ASSERT_TRUE(client_->state().Save().ok());
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{3}) << "the open round finishes without the new process";
  EXPECT_THAT(client_->state().restored(), HasSubstr("residuals-2: saved before step 2, restored"));
  TrainUntil(Step{3}, Step{6});
  ExpectConserved({0, 1, 3, 4, 5}, 6, nothing_);
  EXPECT_EQ(client_->counters().dropped_residuals(), 0u);
}

TEST_F(StateTest, ANewProcessDropsResidualsAfterWhichWasPushed) {
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{0});
  TrainUntil(Step{0}, Step{2});
  ASSERT_TRUE(client_->state().Save().ok());
  TrainUntil(Step{2}, Step{3});
  ASSERT_TRUE(client_->state().Save().ok());
  const Tensors dropped = ResidualsOf(3);
  std::filesystem::remove(PathOf(3));
  std::filesystem::remove(LivePath());
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{4});
  EXPECT_THAT(client_->state().restored(),
              HasSubstr("not restored: the worker has pushed up to step 3 since"));
  EXPECT_EQ(client_->counters().dropped_residuals(), kLossyShards);
  TrainUntil(Step{4}, Step{6});
  ExpectConserved({0, 1, 2, 4, 5}, 6, dropped);
}

// The destructor does not change the file, so it leaves what kill -9 leaves.
TEST_F(StateTest, ANewProcessRestoresWhatAnEndedOneHasLeft) {
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{0});
  TrainUntil(Step{0}, Step{3});
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{4});
  EXPECT_EQ(client_->state().restored(),
            dir_ + "/worker-0: no file yet; " + LivePath() + ": restored for 5 of 5 shards");
  TrainUntil(Step{4}, Step{6});
  ExpectConserved({0, 1, 2, 4, 5}, 6, nothing_);
  EXPECT_EQ(client_->counters().dropped_residuals(), 0u);
}

TEST_F(StateTest, WhatAnEndedProcessHasLeftBeforeTheServersWentBackIsDropped) {
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{0});
  TrainUntil(Step{0}, Step{3});
  ASSERT_TRUE(client_->state().Save().ok());
  const Tensors dropped = ResidualsOf(3);
  std::filesystem::remove(PathOf(3));
  SaveCheckpoint();
  RollBack(3);
  MakeLossy(/*saves=*/true);
  const Step first = *Join();
  EXPECT_THAT(client_->state().restored(), HasSubstr("the residuals of 4 shards are dropped"));
  EXPECT_EQ(client_->counters().dropped_residuals(), kLossyShards);
  TrainUntil(first, Step{6});
  std::vector<uint64_t> steps = {0, 1, 2};
  for (uint64_t step = first.value; step < 6; ++step) steps.push_back(step);
  ExpectConserved(steps, 6, dropped);
}

TEST_F(StateTest, ADamagedFileOfAnEndedProcessIsNotUsed) {
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{0});
  TrainUntil(Step{0}, Step{3});
  ASSERT_TRUE(client_->state().Save().ok());
  const Tensors dropped = ResidualsOf(3);
  std::filesystem::remove(PathOf(3));
  std::filesystem::resize_file(LivePath(), 4096 + 100);
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{4});
  EXPECT_THAT(client_->state().restored(), HasSubstr("are lost; " + LivePath() + ": truncated"));
  TrainUntil(Step{4}, Step{6});
  ExpectConserved({0, 1, 2, 4, 5}, 6, dropped);
}

TEST_F(StateTest, AProcessWithoutAFileOfItsOwnRestoresAndRemovesTheFormerOne) {
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{0});
  TrainUntil(Step{0}, Step{3});
  std::filesystem::create_directories(LivePath() + ".new/obstacle");
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{4});
  EXPECT_THAT(client_->state().restored(), HasSubstr(": restored for 5 of 5 shards"));
  EXPECT_FALSE(std::filesystem::exists(LivePath()));
  TrainUntil(Step{4}, Step{6});
  ExpectConserved({0, 1, 2, 4, 5}, 6, nothing_);
}

TEST_F(StateTest, TheStateIsDueOnlyBeforeTheAnnouncedStep) {
  MakeLossy(/*saves=*/true);
  Step step = *Join();
  EXPECT_FALSE(client_->state().IsDue()) << "no step is announced";
  for (const auto& server : servers_) server->set_checkpoint_step(Step{3});
  ASSERT_TRUE(client_->members().Refresh().ok());
  std::vector<bool> due;
  for (; step < Step{6}; ++step) {
    due.push_back(client_->state().IsDue());
    ASSERT_TRUE(Train(step, GradientOf(step)).ok());
  }
  EXPECT_THAT(due, ElementsAre(false, false, false, true, false, false));
}

TEST_F(StateTest, AnAnnouncementThatArrivesTooLateSavesNothing) {
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{0});
  TrainUntil(Step{0}, Step{4});
  servers_[0]->set_checkpoint_step(Step{3});
  ASSERT_TRUE(client_->members().Refresh().ok());
  EXPECT_FALSE(client_->state().IsDue());
}

TEST_F(StateTest, AStateIsWrittenInTheBackgroundAsItWasAtTheCall) {
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{0});
  TrainUntil(Step{0}, Step{2});
  const Tensors masters = *client_->masters().Read();
  absl::Notification go_on;
  std::string beside;
  ASSERT_TRUE(client_->state()
                  .StartSave([&](const std::string& path) {
                    beside = path;
                    go_on.WaitForNotification();
                    return absl::OkStatus();
                  })
                  .ok());
  TrainUntil(Step{2}, Step{4});
  EXPECT_EQ(client_->state().StartSave(),
            absl::UnavailableError(PathOf(4) + ": not saved, because an earlier state is still "
                                               "being written"));
  go_on.Notify();
  client_.reset();  // blocks until the state is written
  EXPECT_EQ(beside, PathOf(2));
  EXPECT_THAT(Names(), ElementsAre("residuals-2"));
  ExpectMass({0, 1}, masters, 2, nothing_);
}

// The earlier process has not heard yet that another one has its number.
TEST_F(StateTest, AProcessThatHasLostItsNumberSavesNothing) {
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{0});
  TrainUntil(Step{0}, Step{2});
  absl::Notification go_on;
  ASSERT_TRUE(client_->state()
                  .StartSave([&](const std::string&) {
                    go_on.WaitForNotification();
                    return absl::OkStatus();
                  })
                  .ok());
  std::unique_ptr<Client> earlier = std::move(client_);
  for (const auto& server : servers_) server->set_incarnation(Incarnation{2});
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{3});
  ASSERT_TRUE(client_->state().Save().ok());
  go_on.Notify();
  earlier->state().WaitForWrite();
  EXPECT_EQ(
      earlier->state().Save(),
      absl::AlreadyExistsError(dir_ + "/worker-0: another process has joined under this number"));
  EXPECT_THAT(Names(), ElementsAre("residuals-3"));
  EXPECT_TRUE(client_->state().Save().ok());
}

TEST_F(StateTest, AWriteThatFailsInTheBackgroundKeepsTheOlderStates) {
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{0});
  ASSERT_TRUE(client_->state().Save().ok());
  TrainUntil(Step{0}, Step{1});
  std::filesystem::create_directories(PathOf(1));
  EXPECT_TRUE(client_->state().StartSave().ok());
  TrainUntil(Step{1}, Step{2});
  EXPECT_TRUE(client_->state().Save().ok());
  EXPECT_THAT(Names(), UnorderedElementsAre("residuals-0", "residuals-1", "residuals-2"));
  EXPECT_TRUE(std::filesystem::is_directory(PathOf(1)));
}

TEST_F(StateTest, TheNewestThreeStatesAreKept) {
  MakeLossy(/*saves=*/true);
  Step step = *Join();
  for (; step < Step{5}; ++step) {
    ASSERT_TRUE(client_->state().Save().ok());
    ASSERT_TRUE(Train(step, GradientOf(step)).ok());
  }
  EXPECT_THAT(Names(), UnorderedElementsAre("residuals-2", "residuals-3", "residuals-4"));
}

TEST_F(StateTest, ADamagedStateEndsTheJoin) {
  MakeLossy(/*saves=*/true);
  ASSERT_EQ(*Join(), Step{0});
  ASSERT_TRUE(client_->state().Save().ok());
  std::ofstream(PathOf(0), std::ios::app) << "x";
  MakeLossy(/*saves=*/true);
  EXPECT_TRUE(absl::IsDataLoss(Join().status()));
}

// The servers' gTop-k selects only the first value of every shard. In the second of three steps the
// list of selected indices never arrives.
TEST_F(ClientTest, UnselectedValuesArePushedAgainUnlessTheirListIsMissed) {
  bool missed = false;
  for (const auto& server : servers_) {
    server->set_answer([&](ParametersEntry& answer) {
      const size_t count = partition_.value_count(answer.shard);
      answer.frontier = missed ? answer.step + 1 : answer.step;
      answer.selected = EncodeIndexList(std::vector<uint32_t>{0}, count);
    });
  }
  Make({});
  Step step = *Join();
  const auto gradients = Values(2, 1);
  step = *Train(step, gradients);
  ASSERT_TRUE(client_->WaitAll().ok());
  EXPECT_EQ(client_->counters().lost_gtopk_returns(), 0u);
  missed = true;
  step = *Train(step, gradients);
  ASSERT_TRUE(client_->WaitAll().ok());
  EXPECT_EQ(client_->counters().lost_gtopk_returns(), partition_.shard_count());
  step = *Train(step, gradients);
  EXPECT_EQ(CheckPushes(gradients, [](Step pushed) { return pushed == Step{1} ? 2.0f : 1.0f; }),
            3 * partition_.shard_count());
}

// The server applies only the first value of every shard. In the second of three steps, it is
// restarted before the worker has its verdicts and its lists of selected indices.
TEST_F(ClientTest, UnselectedValuesReturnOnceIfTheServerIsRestarted) {
  for (const auto& server : servers_) {
    server->set_answer([&](ParametersEntry& answer) {
      answer.frontier = answer.step;
      answer.selected =
          EncodeIndexList(std::vector<uint32_t>{0}, partition_.value_count(answer.shard));
    });
  }
  Make({});
  Step step = *Join();
  const auto gradients = Values(2, 1);
  step = *Train(step, gradients);
  ASSERT_TRUE(client_->WaitAll().ok());
  transport_.Hold(ServerId{0}, true);
  const size_t shard_count = partition_.ShardsOf(ServerId{0}).size();
  std::thread restarter([&] {
    while (servers_[0]->pushes().size() < 2 * shard_count) std::this_thread::yield();
    servers_[0]->Restart(/*keep_state=*/true);
    while (client_->counters().rejoins() == 0) std::this_thread::yield();
    transport_.Hold(ServerId{0}, false);
  });
  step = *Train(step, gradients);
  restarter.join();
  ASSERT_TRUE(client_->WaitAll().ok());
  step = *Train(step, gradients);
  ASSERT_TRUE(client_->WaitAll().ok());
  EXPECT_EQ(client_->counters().lost_gtopk_returns(), 0u);
  EXPECT_EQ(
      CheckPushes(gradients, [](Step pushed) { return static_cast<float>(pushed.value + 1); }),
      3 * partition_.shard_count());
}

TEST_F(ClientTest, AMalformedListOfSelectedIndicesIsAFailureThatNamesServerAndShard) {
  servers_[1]->set_answer(
      [](ParametersEntry& answer) { answer.selected = ByteChain(std::vector<std::byte>(2)); });
  Make({});
  ASSERT_TRUE(Join().ok());
  const absl::Status status = client_->WaitAll();
  EXPECT_THAT(std::string(status.message()), HasSubstr("server 1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(": selected: list of indices below "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("shard "));
}

}  // namespace
}  // namespace thinwire
