#include "server/core/staleness/dcasgd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/codec/codec_cases.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

using Floats = std::vector<float>;

constexpr float kMax = std::numeric_limits<float>::max();
const MeanSquares kNone(0, 0);

TEST(DcasgdTest, AddsTheSquareTimesTheChange) {
  const Floats now = {5, 0, 2}, then = {1, 3, 2};
  // 2 + .5 * 4 * 4, -2 + .5 * 4 * -3, 7 + .5 * 49 * 0
  EXPECT_EQ(Values(Compensated(Fp32Payload({2, -2, 7}), now, then, 0.5, kNone, kMax)),
            (Floats{10, -8, 7}));
  EXPECT_EQ(Values(Compensated(Fp32Payload({2, -2, 7}), now, then, 0, kNone, kMax)),
            (Floats{2, -2, 7}));
}

TEST(DcasgdTest, ASparseGradientKeepsItsEntries) {
  const Floats now = {5, 0, 2, 9}, then = {1, 3, 2, 4};
  const CheckedPayload result =
      Compensated(SparsePayload(Floats{0, -2, 0, 2}), now, then, 0.5, kNone, kMax);
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
    const Floats got = Values(Compensated(payload, now, then, 0.25, kNone, kMax)),
                 g = Values(payload);
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
  EXPECT_EQ(Values(Compensated(Fp32Payload({1e30f, -1e30f, 1e30f}), now, then, kMax, kNone, 2e30f)),
            (Floats{2e30f, -2e30f, 2e30f}));
}

TEST(MeanSquaresTest, DividesLambdaByTheRootOfTheMeanSquare) {
  MeanSquares squares(3, 0.75);
  squares.Add(Fp32Payload({4, 0, -2}));
  EXPECT_EQ(Floats(squares.values().begin(), squares.values().end()), (Floats{4, 0, 1}));
  squares.Add(Fp32Payload({2, 2, 2}));
  // .75 * 4 + .25 * 4, .25 * 4, .75 * 1 + .25 * 4
  EXPECT_EQ(Floats(squares.values().begin(), squares.values().end()), (Floats{4, 1, 1.75}));
  const Floats now = {3, 3, 3}, then = {1, 2, 3};
  const Floats got = Values(Compensated(Fp32Payload({2, 2, 2}), now, then, 0.5, squares, kMax));
  EXPECT_NEAR(got[0], 2 + 0.5 / 2 * 4 * 2, 1e-5);
  EXPECT_NEAR(got[1], 2 + 0.5 / 1 * 4 * 1, 1e-5);
  EXPECT_EQ(got[2], 2);
}

TEST(MeanSquaresTest, ASparseGradientChangesTheMeansOfItsEntries) {
  MeanSquares squares(4, 0.5);
  squares.Add(Fp32Payload({2, 2, 2, 2}));
  squares.Add(SparsePayload(Floats{0, -4, 0, 2}));
  EXPECT_EQ(Floats(squares.values().begin(), squares.values().end()), (Floats{2, 9, 2, 3}));
}

TEST(MeanSquaresTest, AValueWithoutGradientsHasALargeButFiniteFactor) {
  const MeanSquares squares(1, 0.5);
  EXPECT_NEAR(squares.FactorOf(0), std::sqrt(1e7), 1e-6);
}

TEST(MeanSquaresTest, AMeanBeyondTheLargestFloatBecomesThatFloat) {
  MeanSquares squares(2, 0.5);
  squares.Add(Fp32Payload({kMax, 1}));
  squares.Add(Fp32Payload({kMax, 1}));
  EXPECT_EQ(Floats(squares.values().begin(), squares.values().end()), (Floats{kMax, 0.75}));
}

TEST(MeanSquaresTest, WithoutADecayThereAreNone) {
  MeanSquares squares(2, 0);
  squares.Add(Fp32Payload({3, 3}));
  EXPECT_TRUE(squares.values().empty());
  EXPECT_EQ(squares.FactorOf(1), 1);
  EXPECT_TRUE(squares.Save().empty());
}

TEST(MeanSquaresTest, ASnapshotContinues) {
  MeanSquares squares(3, 0.9), restored(3, 0.9);
  squares.Add(Fp32Payload({4, 0, -2}));
  EXPECT_TRUE(restored.Restore(squares.Save()).ok());
  for (MeanSquares* each : {&squares, &restored}) each->Add(Fp32Payload({1, 2, 3}));
  EXPECT_TRUE(std::ranges::equal(squares.values(), restored.values()));
  EXPECT_EQ(MeanSquares(2, 0.9).Restore(squares.Save()).message(),
            "mean_squares: wrong size (expected 8 bytes, got 12)");
}

}  // namespace
}  // namespace thinwire
