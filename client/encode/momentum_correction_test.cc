#include "client/encode/momentum_correction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/payload.h"

namespace thinwire::client {
namespace {

using Floats = std::vector<float>;

// Returns VALUES encoded with SPEC.
CheckedPayload Encoded(const CodecSpec& spec, const Floats& values) {
  const auto codec = *MakeCodec(spec);
  std::vector<std::byte> bytes(codec->MaxPayloadBytes(values.size()));
  bytes.resize(codec->Encode(values, RandomKeys(), bytes));
  return CheckPayload(ByteChain(std::move(bytes)), values.size()).value();
}

// Returns a sparse payload with the 2 largest of VALUES as its entries.
CheckedPayload TopTwo(const Floats& values) {
  return Encoded({.id = CodecId::kTopK, .density = 2.0 / static_cast<double>(values.size())},
                 values);
}

Floats Copy(std::span<const float> values) { return {values.begin(), values.end()}; }

TEST(MomentumCorrectionTest, WhenOffItReturnsTheGradientAndKeepsNoMomentum) {
  MomentumCorrection correction({.enabled = false});
  Floats scratch;
  const Floats gradient = {1, 2, 3};
  EXPECT_EQ(correction.Correct(gradient, scratch).data(), gradient.data());
  correction.Sent(TopTwo(gradient));
  EXPECT_TRUE(correction.momentum().empty());
}

TEST(MomentumCorrectionTest, HeavyBallAddsDecayedGradients) {
  MomentumCorrection correction({.enabled = true, .momentum = 0.5f});
  Floats scratch;
  EXPECT_EQ(Copy(correction.Correct(Floats{4, 0}, scratch)), (Floats{4, 0}));
  EXPECT_EQ(Copy(correction.Correct(Floats{4, 8}, scratch)), (Floats{6, 8}));
  EXPECT_EQ(Copy(correction.Correct(Floats{0, 0}, scratch)), (Floats{3, 4}));
}

// The paper's formula is u = m (u + g), residual += u + g. MomentumCorrection stores u without the
// factor m.
TEST(MomentumCorrectionTest, NesterovMatchesThePaper) {
  constexpr float kMomentum = 0.9f;
  MomentumCorrection correction({.enabled = true, .momentum = kMomentum, .nesterov = true});
  Floats scratch, published(5);
  for (int step = 0; step < 30; ++step) {
    Floats gradient(5);
    for (int i = 0; i < 5; ++i) gradient[i] = std::sin(static_cast<float>(7 * step + i));
    const Floats direction = Copy(correction.Correct(gradient, scratch));
    for (int i = 0; i < 5; ++i) {
      published[i] = kMomentum * (published[i] + gradient[i]);
      EXPECT_NEAR(direction[i], published[i] + gradient[i], 1e-5) << step << " " << i;
    }
    if (step % 4 != 0) continue;
    correction.Sent(TopTwo({0, 5, 0, 0, 5}));
    published[1] = published[4] = 0;
  }
}

TEST(MomentumCorrectionTest, ASparsePayloadMasksTheMomentumOfItsEntries) {
  MomentumCorrection correction({.enabled = true});
  Floats scratch;
  correction.Correct(Floats{1, 2, 3, 4}, scratch);
  correction.Sent(TopTwo({9, 0, 0, -9}));
  EXPECT_EQ(Copy(correction.momentum()), (Floats{0, 2, 3, 0}));
}

TEST(MomentumCorrectionTest, ADensePayloadMasksNoMomentum) {
  MomentumCorrection correction({.enabled = true});
  Floats scratch;
  correction.Correct(Floats{1, 2, 3, 4}, scratch);
  for (const CodecId id : {CodecId::kFp32, CodecId::kFp8E5m2}) {
    correction.Sent(Encoded({.id = id}, {1, 2, 3, 4}));
  }
  EXPECT_EQ(Copy(correction.momentum()), (Floats{1, 2, 3, 4}));
}

TEST(MomentumCorrectionTest, WithoutFactorMaskingMomentumStays) {
  MomentumCorrection correction({.enabled = true, .factor_masking = false});
  Floats scratch;
  correction.Correct(Floats{1, 2, 3, 4}, scratch);
  correction.Sent(TopTwo({9, 0, 0, -9}));
  EXPECT_EQ(Copy(correction.momentum()), (Floats{1, 2, 3, 4}));
}

TEST(MomentumCorrectionTest, ARestoredMomentumContinuesWithTheSameValues) {
  const CorrectionOptions options = {.enabled = true, .nesterov = true};
  MomentumCorrection first(options), second(options);
  Floats scratch, other;
  first.Correct(Floats{1, -2, 3}, scratch);
  second.Restore(Copy(first.momentum()));
  EXPECT_EQ(Copy(first.Correct(Floats{4, 5, 6}, scratch)),
            Copy(second.Correct(Floats{4, 5, 6}, other)));
}

}  // namespace
}  // namespace thinwire::client
