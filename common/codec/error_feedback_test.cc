#include "common/codec/error_feedback.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "common/codec/codec_cases.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

constexpr size_t kCount = 301;

std::unique_ptr<const Codec> Make(CodecId id) { return MakeCodec({.id = id}).value(); }

CheckedPayload Send(ErrorFeedback& feedback, const Codec& codec, std::span<const float> gradient) {
  std::vector<std::byte> payload(codec.MaxPayloadBytes(gradient.size()));
  payload.resize(feedback.Encode(codec, gradient, RandomKeys(), payload));
  return EncodedPayload(ByteChain(std::move(payload)), gradient.size());
}

// Adds up the produced gradients and the applied payloads, separately for each index.
class Ledger {
 public:
  void Produce(std::span<const float> gradient) {
    for (size_t i = 0; i < kCount; ++i) {
      produced_[i] += gradient[i];
      magnitude_[i] += std::abs(gradient[i]);
    }
  }
  void Apply(const CheckedPayload& payload) {
    const std::vector<float> values = Decoded(payload);
    for (size_t i = 0; i < kCount; ++i) applied_[i] += values[i];
  }
  // Expects that the applied sums plus RESIDUAL equal the produced sums. The tolerance covers the
  // rounding of fp32 sums.
  void ExpectConserved(std::span<const float> residual) const {
    for (size_t i = 0; i < kCount; ++i) {
      const double left = residual.empty() ? 0 : residual[i];
      ASSERT_NEAR(produced_[i], applied_[i] + left, 1e-6 * magnitude_[i]) << "value " << i;
    }
  }

 private:
  std::vector<double> produced_ = std::vector<double>(kCount);
  std::vector<double> applied_ = std::vector<double>(kCount);
  std::vector<double> magnitude_ = std::vector<double>(kCount);
};

class ErrorFeedbackOfEachCodec : public testing::TestWithParam<CodecSpec> {};

TEST_P(ErrorFeedbackOfEachCodec, ProducedEqualsAppliedPlusResidualOverAThousandSteps) {
  const auto codec = MakeCodec(GetParam()).value();
  ErrorFeedback feedback(kCount, true);
  Ledger ledger;
  for (uint32_t step = 0; step < 1000; ++step) {
    const std::vector<float> gradient = Laplace(kCount, step);
    ledger.Produce(gradient);
    const CheckedPayload payload = Send(feedback, *codec, gradient);
    if (step % 7 == 3) {
      feedback.GiveBack(payload);  // as if the server had judged this push late
    } else {
      ledger.Apply(payload);
    }
  }
  ledger.ExpectConserved(feedback.residual());
}

// Returns an upper bound of |r| / |g|, where r is the residual and g a gradient. Suppose that
// encoding loses a part q of |r + g|^2, and that gradients are independent of the residual. Then
// |r|^2 = q (|r|^2 + |g|^2) on average, so |r| = sqrt(q / (1 - q)) |g|.
//
// table_1 has a separate bound: it sends the 99th percentile for every magnitude, so its encoding
// error is usually larger than the array (3.5 |v|^2 for normal values v), and the residual grows
// until the gradients are small compared with the residual.
double MaxResidualNorm(const CodecSpec& spec) {
  if (spec.id == CodecId::kTable1) return 25;
  const double left = MaxNormalLoss(spec, kCount);
  return 1.3 * std::sqrt(left / (1 - left));
}

double Power(std::span<const float> values) {
  double power = 0;
  for (const float value : values) power += std::pow(double{value}, 2);
  return power;
}

// The residual of every codec stays below MaxResidualNorm.
TEST_P(ErrorFeedbackOfEachCodec, TheResidualStaysWithinItsBound) {
  const auto codec = MakeCodec(GetParam()).value();
  ErrorFeedback feedback(kCount, true);
  std::vector<std::byte> payload(codec->MaxPayloadBytes(kCount));
  double produced = 0, largest = 0;
  for (uint32_t step = 0; step < 1000; ++step) {
    const std::vector<float> gradient = Gauss(kCount, step);
    std::vector<float> sum = gradient;
    for (size_t i = 0; i < feedback.residual().size(); ++i) sum[i] += feedback.residual()[i];
    feedback.Encode(*codec, gradient, {.shared = step, .per_worker = step}, payload);
    const double left = Power(feedback.residual());
    if (GetParam().id != CodecId::kTable1) {
      // randomk selects values at random. In a single array, the selected values can contain a
      // smaller part of the array's sum of squares than on average over many arrays.
      const bool drawn = GetParam().id == CodecId::kRandomK;
      ASSERT_LE(left, (drawn ? 1 : MaxNormalLoss(GetParam(), kCount)) * Power(sum))
          << "step " << step;
    }
    produced += Power(gradient) / 1000;
    largest = std::max(largest, left);
  }
  EXPECT_LE(std::sqrt(largest), MaxResidualNorm(GetParam()) * std::sqrt(produced));
}

INSTANTIATE_TEST_SUITE_P(All, ErrorFeedbackOfEachCodec, testing::ValuesIn(AllCodecSpecs()),
                         [](const auto& info) { return SpecName(info.param); });

TEST(ErrorFeedbackTest, ALosslessCodecNeedsNoMemory) {
  ErrorFeedback feedback(kCount, true);
  const std::vector<float> gradient = Gauss(kCount, 1);
  const CheckedPayload payload = Send(feedback, *Make(CodecId::kFp32), gradient);
  EXPECT_EQ(Decoded(payload), gradient);
  EXPECT_TRUE(feedback.residual().empty());
}

TEST(ErrorFeedbackTest, ALosslessCodecSendsTheWholeResidualAndFreesIt) {
  ErrorFeedback feedback(kCount, true);
  Ledger ledger;
  for (const CodecId id : {CodecId::kFp8E5m2, CodecId::kFp32}) {
    const std::vector<float> gradient = Gauss(kCount, 2);
    ledger.Produce(gradient);
    ledger.Apply(Send(feedback, *Make(id), gradient));
    EXPECT_EQ(feedback.residual().empty(), id == CodecId::kFp32);
  }
  ledger.ExpectConserved({});
}

TEST(ErrorFeedbackTest, TheCodecMayChangeAtEveryCall) {
  ErrorFeedback feedback(kCount, true);
  Ledger ledger;
  const std::vector<CodecSpec> specs = AllCodecSpecs();
  for (uint32_t step = 0; step < 200; ++step) {
    const std::vector<float> gradient = StudentT3(kCount, step);
    ledger.Produce(gradient);
    const auto codec = MakeCodec(specs[step * 7 % specs.size()]).value();
    ledger.Apply(Send(feedback, *codec, gradient));
  }
  ledger.ExpectConserved(feedback.residual());
}

TEST(ErrorFeedbackTest, AGivenBackPayloadIsSentAgainOnce) {
  const std::vector<float> gradient = Gauss(kCount, 3), zero(kCount, 0.0f);
  ErrorFeedback feedback(kCount, true);
  const auto codec = Make(CodecId::kFp32);
  feedback.GiveBack(Send(feedback, *codec, gradient));
  EXPECT_EQ(std::vector<float>(feedback.residual().begin(), feedback.residual().end()), gradient);
  EXPECT_EQ(Decoded(Send(feedback, *codec, zero)), gradient);
  EXPECT_EQ(Decoded(Send(feedback, *codec, zero)), zero);
}

TEST(ErrorFeedbackTest, AppliedValuesAreNotGivenBack) {
  const std::vector<uint32_t> applied = {0, 7, kCount - 1};
  for (const CodecId id : {CodecId::kFp32, CodecId::kFp8E5m2, CodecId::kTopK, CodecId::kRandomK}) {
    ErrorFeedback feedback(kCount, true);
    const CheckedPayload payload = Send(feedback, *Make(id), Gauss(kCount, 3));
    std::vector<float> want(feedback.residual().begin(), feedback.residual().end());
    want.resize(kCount);
    std::vector<float> decoded = Decoded(payload);
    for (const uint32_t index : applied) decoded[index] = 0;
    for (size_t i = 0; i < kCount; ++i) want[i] += decoded[i];
    feedback.GiveBack(payload, applied);
    EXPECT_EQ(std::vector<float>(feedback.residual().begin(), feedback.residual().end()), want);
  }
}

TEST(ErrorFeedbackTest, WithoutKeepErrorOnlyGivenBackPayloadsAreKept) {
  const std::vector<float> gradient = Gauss(kCount, 4), zero(kCount, 0.0f);
  ErrorFeedback feedback(kCount, false);
  const auto codec = Make(CodecId::kFp8E5m2);
  const CheckedPayload payload = Send(feedback, *codec, gradient);
  EXPECT_TRUE(feedback.residual().empty());
  feedback.GiveBack(payload);
  EXPECT_EQ(Decoded(Send(feedback, *codec, zero)), Decoded(payload));
  EXPECT_TRUE(feedback.residual().empty());
}

TEST(ErrorFeedbackTest, AShardWithoutValuesWorks) {
  ErrorFeedback feedback(0, true);
  for (const CodecId id : {CodecId::kFp32, CodecId::kFp8E4m3, CodecId::kTopK}) {
    const CheckedPayload payload = Send(feedback, *Make(id), {});
    EXPECT_EQ(payload.count(), 0u);
    feedback.GiveBack(payload);
  }
}

}  // namespace
}  // namespace thinwire
