#include "client/exchange/gtopk_returns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/encode/shard_encoder.h"
#include "common/codec/codec.h"
#include "common/codec/sparse/index_list.h"

namespace thinwire::client {
namespace {

using ::testing::HasSubstr;
using Indices = std::vector<uint32_t>;

constexpr ShardId kShard{3};
constexpr size_t kValues = 4096;

// The arguments of one call of ShardEncoder::GiveBack.
struct Returned {
  ShardId shard;
  ByteChain payload;
  Indices selected;
  bool operator==(const Returned&) const = default;
};

// Records the calls of GiveBack.
class RecordingEncoder final : public ShardEncoder {
 public:
  explicit RecordingEncoder(std::vector<Returned>& returned) : returned_(returned) {}

  size_t most_begun() const override { return 1; }
  absl::Status Begin(const Work&) override { return absl::OkStatus(); }
  absl::StatusOr<std::optional<ByteChain>> Finish() override { return std::nullopt; }
  absl::Status GiveBack(ShardId shard, const CheckedPayload& payload,
                        std::span<const uint32_t> selected) override {
    returned_.push_back({shard, payload.bytes(), Indices(selected.begin(), selected.end())});
    return absl::OkStatus();
  }
  absl::StatusOr<double> SumOfSquares(std::span<const float>) override { return 0; }
  absl::StatusOr<std::vector<ShardFeedback>> feedback() override {
    return std::vector<ShardFeedback>();
  }
  absl::Status Restore(ShardId, std::span<const float>, std::span<const float>) override {
    return absl::OkStatus();
  }

 private:
  std::vector<Returned>& returned_;
};

ParametersEntry Parameters(uint64_t frontier, const Indices& selected) {
  return {.shard = kShard,
          .step = Step{frontier},
          .frontier = Step{frontier},
          .selected = EncodeIndexList(selected, kValues)};
}

// Returns a push of STEP in which every value equals the step number.
PushEntry Push(uint64_t step, uint32_t examples = 8) {
  const std::vector<float> values(kValues, static_cast<float>(step));
  const auto fp32 = *MakeCodec({.id = CodecId::kFp32});
  std::vector<std::byte> payload(fp32->MaxPayloadBytes(kValues));
  payload.resize(fp32->Encode(values, RandomKeys(), payload));
  return {.shard = kShard,
          .step = Step{step},
          .examples = examples,
          .payload = ByteChain(std::move(payload))};
}

class GtopkReturnsTest : public ::testing::Test {
 protected:
  // Handles ENTRY and expects no error.
  void Arrive(const ParametersEntry& entry) { EXPECT_TRUE(returns_.OnParameters(entry).ok()); }
  void Accept(const PushEntry& push) { EXPECT_TRUE(returns_.OnAccepted(push).ok()); }
  // Returns the recorded calls of GiveBack since the last call of TakeReturned.
  std::vector<Returned> TakeReturned() { return std::exchange(returned_, {}); }
  uint64_t lost_count() const { return report_.counters().lost_gtopk_returns(); }

  static Returned Of(const PushEntry& push, Indices selected) {
    return {push.shard, push.payload, std::move(selected)};
  }

  const Partition partition_ = *Partition::Make({{"w", {4, kValues}}}, kValues, 1);
  std::vector<Returned> returned_;
  const std::unique_ptr<PushEncoder> encoder_ =
      *PushEncoder::Make(partition_, {}, nullptr, std::make_unique<RecordingEncoder>(returned_));
  StatusReport report_;
  GtopkReturns returns_{partition_, *encoder_, report_};
};

TEST_F(GtopkReturnsTest, TheListOfItsRoundReturnsAnAcceptedPushOnce) {
  Arrive(Parameters(0, {}));
  EXPECT_TRUE(returns_.Keeps(kShard));
  Accept(Push(0));
  EXPECT_TRUE(returns_.pending());
  EXPECT_TRUE(TakeReturned().empty());
  Arrive(Parameters(1, {7, 90}));
  EXPECT_EQ(TakeReturned(), std::vector{Of(Push(0), {7, 90})});
  EXPECT_FALSE(returns_.pending());
  Arrive(Parameters(1, {7, 90}));
  EXPECT_TRUE(TakeReturned().empty());
  EXPECT_EQ(lost_count(), 0u);
}

TEST_F(GtopkReturnsTest, ParametersMayArriveBeforeTheVerdict) {
  Arrive(Parameters(4, {3}));
  Arrive(Parameters(5, {7, 90}));
  EXPECT_TRUE(TakeReturned().empty());
  Accept(Push(4));
  EXPECT_EQ(TakeReturned(), std::vector{Of(Push(4), {7, 90})});
  EXPECT_FALSE(returns_.pending());
  Arrive(Parameters(7, {2}));
  Accept(Push(5));
  EXPECT_EQ(lost_count(), 1u);
  EXPECT_FALSE(returns_.pending());
}

TEST_F(GtopkReturnsTest, AListOfALaterRoundReturnsNothingAndIsCounted) {
  Arrive(Parameters(0, {}));
  Accept(Push(0));
  Arrive(Parameters(2, {7}));
  EXPECT_TRUE(TakeReturned().empty());
  EXPECT_EQ(lost_count(), 1u);
  EXPECT_FALSE(returns_.pending());
  Arrive(Parameters(3, {7}));
  EXPECT_EQ(lost_count(), 1u) << "counted once";
}

TEST_F(GtopkReturnsTest, APushWithoutAListBeforeTheNextPushIsLost) {
  Arrive(Parameters(0, {}));
  Accept(Push(0));
  EXPECT_EQ(lost_count(), 0u);
  Accept(Push(1));
  EXPECT_EQ(lost_count(), 1u);
  Arrive(Parameters(2, {}));
  EXPECT_EQ(TakeReturned(), std::vector{Of(Push(1), {})});
  EXPECT_FALSE(returns_.pending());
}

TEST_F(GtopkReturnsTest, NothingIsKeptWithoutListsOrForPushesOfWeightZero) {
  Accept(Push(0));
  EXPECT_FALSE(returns_.pending());
  ParametersEntry without_list = Parameters(1, {});
  without_list.selected = ByteChain();
  Arrive(without_list);
  EXPECT_FALSE(returns_.Keeps(kShard));
  Arrive(Parameters(1, {}));
  Accept(Push(1, 0));
  EXPECT_FALSE(returns_.pending());
  EXPECT_TRUE(TakeReturned().empty());
}

TEST_F(GtopkReturnsTest, AMalformedListIsAnErrorThatNamesTheShard) {
  Arrive(Parameters(0, {}));
  Accept(Push(0));
  for (const ByteChain& list :
       {EncodeIndexList(Indices{kValues}, kValues + 1), EncodeIndexList(Indices{61, 60}, kValues),
        EncodeIndexList(Indices{1, 2}, 50 * kValues), ByteChain(std::vector<std::byte>(3))}) {
    ParametersEntry entry = Parameters(1, {});
    entry.selected = list;
    const absl::Status status = returns_.OnParameters(entry);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("shard 3: selected: "));
  }
  EXPECT_TRUE(TakeReturned().empty());
  Arrive(Parameters(1, {5}));
  EXPECT_EQ(TakeReturned(), std::vector{Of(Push(0), {5})}) << "malformed lists changed nothing";
}

}  // namespace
}  // namespace thinwire::client
