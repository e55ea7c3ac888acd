#include "server/core/staleness/dcasgd.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "common/codec/codec_cases.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

using Floats = std::vector<float>;

constexpr float kMax = std::numeric_limits<float>::max();

TEST(DcasgdTest, AddsTheSquareTimesTheChange) {
  const Floats now = {5, 0, 2}, then = {1, 3, 2};
  // 2 + .5 * 4 * 4, -2 + .5 * 4 * -3, 7 + .5 * 49 * 0
  EXPECT_EQ(Values(Compensated(Fp32Payload({2, -2, 7}), now, then, 0.5, kMax)),
            (Floats{10, -8, 7}));
  EXPECT_EQ(Values(Compensated(Fp32Payload({2, -2, 7}), now, then, 0, kMax)), (Floats{2, -2, 7}));
}

TEST(DcasgdTest, ASparseGradientKeepsItsEntries) {
  const Floats now = {5, 0, 2, 9}, then = {1, 3, 2, 4};
  const CheckedPayload result =
      Compensated(SparsePayload(Floats{0, -2, 0, 2}), now, then, 0.5, kMax);
  EXPECT_EQ(Values(result), (Floats{0, -8, 0, 12}));
  // The result passes the check of payloads that peers send.
  const auto checked = CheckPayload(result.bytes(), 4);
  ASSERT_TRUE(checked.ok()) << checked.status();
  ASSERT_TRUE(PayloadIsSparse(*checked));
  EXPECT_EQ(checked->entries().head().entry_count, 2u);
}

TEST(DcasgdTest, EveryCodecIsCompensatedAfterDecoding) {
  constexpr size_t kCount = 5000;  // more than two blocks
  const Floats gradient = Gauss(kCount, 1), now = Gauss(kCount, 2), then = Gauss(kCount, 3);
  int checked_count = 0;
  for (const CodecSpec& spec : AllCodecSpecs()) {
    const auto codec = MakeCodec(spec).value();
    const CheckedPayload payload =
        CheckPayload(ByteChain(Encoded(*codec, gradient)), kCount).value();
    const Floats got = Values(Compensated(payload, now, then, 0.25, kMax)), g = Values(payload);
    for (size_t i = 0; i < kCount; ++i) {
      const double want = g[i] + 0.25 * g[i] * g[i] * (now[i] - then[i]);
      ASSERT_NEAR(got[i], want, 1e-5 * (1 + std::abs(want))) << spec.id << " value " << i;
    }
    ++checked_count;
  }
  EXPECT_GT(checked_count, 20);
}

TEST(DcasgdTest, AResultBeyondTheLargestValueBecomesThatValue) {
  const Floats now = {kMax, -kMax, 1}, then = {-kMax, kMax, 0};
  EXPECT_EQ(Values(Compensated(Fp32Payload({1e30f, -1e30f, 1e30f}), now, then, kMax, 2e30f)),
            (Floats{2e30f, -2e30f, 2e30f}));
}

}  // namespace
}  // namespace thinwire
