#include "kernels/cuda/ops/qsgd.h"

#include <algorithm>
#include <cmath>

#include "kernels/codes.h"
#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/mix_bits.h"
#include "kernels/pack_bits.h"
#include "kernels/reductions.h"

namespace thinwire::kernels::cuda {
namespace {

// The payload that the CPU kernels produce group by group, and the values that this payload decodes
// to.
struct Coded {
  std::vector<float> numbers;
  std::vector<std::byte> codes;
  std::vector<float> decoded;
};

class QsgdTwinTest : public CudaTest {
 protected:
  static Coded OnCpu(const std::vector<float>& values, const QsgdCode& code) {
    Coded coded;
    for (size_t first = 0; first < values.size(); first += kQsgdGroup) {
      const size_t n = std::min(kQsgdGroup, values.size() - first);
      const auto group = std::span(values).subspan(first, n);
      const float largest = kernels::LargestMagnitude(group);
      std::vector<uint16_t> draws(n);
      for (size_t i = 0; i < n; ++i) {
        draws[i] = static_cast<uint16_t>(MixBits(code.draw + (first + i) / 4) >> (16 * (i % 4)));
      }
      std::vector<uint8_t> codes(n);
      const auto levels = static_cast<float>(code.levels);
      const auto entry = [&](int c) {
        if (code.levels > 0) return largest * (static_cast<float>(c) / levels);
        return c == 0 ? 0.0f : largest * std::ldexp(1.0f, c - 7);
      };
      if (code.levels > 0) {
        CodesOfLevels(group, {largest, levels, code.bits}, draws, codes);
      } else {
        std::vector<float> thresholds(7);
        for (int c = 0; c < 7; ++c) thresholds[c] = 0.5f * entry(c) + 0.5f * entry(c + 1);
        CodesOfMagnitudes(group, thresholds, code.bits, codes);
      }
      std::vector<std::byte> packed(PackedBytes(n, code.bits));
      PackBits(codes, code.bits, packed.data());
      coded.numbers.push_back(largest);
      coded.codes.insert(coded.codes.end(), packed.begin(), packed.end());
      const int sign = 1 << (code.bits - 1);
      for (const uint8_t c : codes) {
        const float magnitude = entry(c & (sign - 1));
        coded.decoded.push_back((c & sign) != 0 ? -magnitude : magnitude);
      }
    }
    return coded;
  }

  void ExpectEqualsCpu(const std::vector<float>& values, const QsgdCode& code) {
    const Coded want = OnCpu(values, code);
    const size_t count = values.size();
    DeviceArray<float> gradient(values, stream_), residual(std::vector<float>(count), stream_);
    DeviceArray<float> out(count, stream_), sum(values, stream_);
    DeviceArray<std::byte> numbers(want.numbers.size() * 4, stream_, 1);
    DeviceArray<std::byte> codes(want.codes.size(), stream_, 1);
    const QsgdPayload bytes = {numbers.data(), codes.data()};
    const auto expect_bytes = [&] {
      EXPECT_TRUE(std::ranges::equal(numbers.Read(), std::as_bytes(std::span(want.numbers))));
      ASSERT_EQ(codes.Read(), want.codes);
    };
    Expect(EncodeQsgd(gradient.span(), code, bytes, stream_));
    expect_bytes();
    Expect(DecodeQsgd(bytes, code, 1.0f, out.span(), stream_));
    ExpectSameBits(out.Read(), want.decoded);
    Expect(DecodeQsgdAdd(bytes, code, 0.3f, sum.span(), stream_));
    std::vector<float> added = values, lost = values;
    for (size_t i = 0; i < count; ++i) added[i] += 0.3f * want.decoded[i];
    ExpectSameBits(sum.Read(), added);
    Expect(EncodeQsgdFeedback(gradient.span(), residual.span(), code, bytes, stream_));
    expect_bytes();
    for (size_t i = 0; i < count; ++i) lost[i] = 0.0f + values[i] - want.decoded[i];
    ExpectSameBits(residual.Read(), lost);
  }
};

TEST_F(QsgdTwinTest, PayloadAndResidualEqualTheCpus) {
  for (const QsgdCode code :
       {QsgdCode{1, 2, 5}, QsgdCode{7, 4, 99}, QsgdCode{127, 8, 3}, QsgdCode{0, 4}}) {
    for (const Kind kind : {Kind::kRandom, Kind::kEqual, Kind::kDenormal}) {
      for (const size_t count : {0, 1, 7, 8, 9, 511, 512, 513, 4097, 20'001}) {
        SCOPED_TRACE(testing::Message() << count << " values in " << code.levels << " levels");
        ExpectEqualsCpu(ValuesOf(kind, count, 3), code);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(QsgdTwinTest, ZerosAreEncodedAsLevelZero) {
  ExpectEqualsCpu(std::vector<float>(600, 0.0f), {7, 4, 1});
}

}  // namespace
}  // namespace thinwire::kernels::cuda
