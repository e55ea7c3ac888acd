// Tests updates with a single gradient. The optimizer can read the values directly from the
// payload, or from the sum after the payload was decoded. Both paths must give the same bits.
//
//   sync, 1 worker    the push closes its round: values come from the payload
//   async, 1 worker   the push makes an update: values come from the payload
//   sync, 2 workers   the round waits for worker 1: the push of worker 0 is decoded into the sum
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

constexpr size_t kValues = 2 * kDecodedBlock + 777;
constexpr uint64_t kSteps = 3;

// Returns BYTES as a chain of pieces of 1001 bytes. Piece boundaries lie inside codes and inside
// the blocks in which values are decoded.
ByteChain InPieces(const std::vector<std::byte>& bytes) {
  const auto owner = std::make_shared<std::vector<std::byte>>(bytes);
  ByteChain chain;
  for (size_t at = 0; at < owner->size(); at += 1001) {
    chain.Append(std::span<const std::byte>(*owner).subspan(at).first(
                     std::min<size_t>(1001, owner->size() - at)),
                 owner);
  }
  return chain;
}

class SingleGradientTest : public testing::TestWithParam<std::tuple<OptimizerKind, CodecSpec>> {
 protected:
  SingleGradientTest()
      : optimizer_(MakeOptimizer({.kind = std::get<0>(GetParam()), .weight_decay = 0.125}).value()),
        codec_(MakeCodec(std::get<1>(GetParam())).value()) {}

  // Returns the bits of the masters after the pushes of worker 0. The other workers push no
  // gradients.
  std::vector<uint32_t> MastersAfter(const Rule& rule) const {
    Shard shard({.value_count = kValues, .rule = rule, .generation = {}}, *optimizer_, schedule_);
    shard.Apply(SeedEvent{Fp32Payload(Gauss(kValues, 1))});
    for (uint32_t i = 0; i < rule.workers; ++i) {
      shard.Apply(FakeWorker{WorkerId{i}}.Join());
      shard.Apply(FakeWorker{WorkerId{i}}.Read(0));
    }
    for (uint64_t step = 0; step < kSteps; ++step) {
      shard.Apply(PushOf(step));
      for (uint32_t i = 1; i < rule.workers; ++i) {
        shard.Apply(FakeWorker{WorkerId{i}}.PushNothing(step));
      }
    }
    EXPECT_EQ(shard.version(), Version{kSteps});
    std::vector<uint32_t> bits(kValues);
    std::ranges::transform(shard.masters(), bits.begin(),
                           [](float master) { return std::bit_cast<uint32_t>(master); });
    return bits;
  }

 private:
  PushEvent PushOf(uint64_t step) const {
    PushEvent push = FakeWorker{WorkerId{0}}.PushNothing(step);
    push.examples = 7;
    push.late_examples = 3;
    const std::vector<float> values = Gauss(kValues, 100 + static_cast<uint32_t>(step));
    push.payload = CheckPayload(InPieces(Encoded(*codec_, values)), kValues).value();
    return push;
  }

  const std::unique_ptr<const Optimizer> optimizer_;
  const std::unique_ptr<const Codec> codec_;
  const Schedule schedule_ = Schedule::Make({.learning_rate = 0.01}).value();
};

TEST_P(SingleGradientTest, HasTheBitsOfAnUpdateThroughTheSum) {
  const std::vector<uint32_t> from_sum = MastersAfter(Rule::Sync(2));
  EXPECT_EQ(MastersAfter(Rule::Sync(1)), from_sum);
  EXPECT_EQ(MastersAfter(Rule::Sync(1, true)), from_sum);
  EXPECT_EQ(MastersAfter(Rule::Async(1)), from_sum);
}

std::vector<OptimizerKind> AllOptimizers() {
  std::vector<OptimizerKind> kinds;
  for (size_t i = 0; i < std::size(kOptimizers); ++i) {
    kinds.push_back(static_cast<OptimizerKind>(i));
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(
    All, SingleGradientTest,
    testing::Combine(testing::ValuesIn(AllOptimizers()), testing::ValuesIn(AllCodecSpecs())),
    [](const auto& param) {
      return std::string(Traits(std::get<0>(param.param)).name) + "_" +
             SpecName(std::get<1>(param.param));
    });

}  // namespace
}  // namespace thinwire
