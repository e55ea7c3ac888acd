#include "kernels/update/update_cases.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>

namespace thinwire::kernels {
namespace {

constexpr size_t kLongest = 67;
constexpr size_t kLargestOffset = 3;
constexpr float kUntouched = 12345.5f;

// The arrays of one kernel call. In the arrays that Run() returns, guard values surround the part
// that the kernel may write.
struct Arrays {
  std::vector<float> sum;
  std::vector<float> masters;
  std::vector<std::vector<float>> slots;
};

// Returns random values of several magnitudes. The slot values are non-negative, because some
// optimizers keep sums of squares in a slot.
Arrays Draw(int slot_count) {
  std::mt19937 random(17);
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-12, 3);
  const auto draw = [&] { return std::ldexp(mantissa(random), exponent(random)); };
  Arrays drawn{.sum = std::vector<float>(kLongest),
               .masters = std::vector<float>(kLongest),
               .slots = std::vector<std::vector<float>>(slot_count, std::vector<float>(kLongest))};
  for (float& value : drawn.sum) value = draw();
  for (float& value : drawn.masters) value = draw();
  for (auto& slot : drawn.slots) {
    for (float& value : slot) value = std::abs(draw());
  }
  return drawn;
}

// Replaces about half of the drawn values by the largest values that an optimizer can meet.
Arrays DrawExtreme(int slot_count) {
  constexpr float kMax = std::numeric_limits<float>::max();
  Arrays drawn = Draw(slot_count);
  std::mt19937 random(18);
  const auto maybe = [&](float& value, float extreme) {
    if (random() % 2 == 0) value = std::copysign(extreme, value);
  };
  for (float& value : drawn.sum) maybe(value, kMax / 2);
  for (float& value : drawn.masters) maybe(value, kMax);
  for (auto& slot : drawn.slots) {
    for (float& value : slot) maybe(value, kMax);
  }
  return drawn;
}

// Returns whether all values are finite. Sets SATURATED if one is the largest float.
bool Finite(std::span<const float> values, bool& saturated) {
  for (const float value : values) {
    if (!std::isfinite(value)) return false;
    saturated |= std::abs(value) == std::numeric_limits<float>::max();
  }
  return true;
}

std::vector<float> Placed(const std::vector<float>& values, size_t offset, size_t length) {
  std::vector<float> placed(kLongest + kLargestOffset + 64, kUntouched);
  for (size_t i = 0; i < length; ++i) placed[offset + i] = values[i];
  return placed;
}

// Copies the first LENGTH values of each array in DRAWN to index OFFSET of a new array, calls the
// kernel once on these copies and returns the new arrays. DRAWN is a result of Draw().
Arrays Run(const UpdateCase& update, const Arrays& drawn, size_t offset, size_t length) {
  Arrays run{.sum = Placed(drawn.sum, offset, length),
             .masters = Placed(drawn.masters, offset, length),
             .slots = {}};
  for (const auto& slot : drawn.slots) run.slots.push_back(Placed(slot, offset, length));
  std::vector<std::span<float>> slots;
  for (auto& slot : run.slots) slots.push_back(std::span(slot).subspan(offset, length));
  const auto masters = std::span(run.masters).subspan(offset, length);
  const bool got = update.kernel(std::span(run.sum).subspan(offset, length), masters, slots);
  if (!update.saturates) return run;
  bool saturated = false;
  EXPECT_TRUE(Finite(masters, saturated));
  for (const auto& slot : slots) EXPECT_TRUE(Finite(slot, saturated));
  EXPECT_EQ(got, saturated);
  return run;
}

// Copies the arrays in DRAWN, calls the kernel once for each index of the copies, with arrays of
// length 1, and returns the copies.
Arrays OneByOne(const UpdateCase& update, const Arrays& drawn) {
  Arrays run = drawn;
  for (size_t i = 0; i < kLongest; ++i) {
    std::vector<std::span<float>> slots;
    for (auto& slot : run.slots) slots.push_back(std::span(slot).subspan(i, 1));
    update.kernel(std::span(run.sum).subspan(i, 1), std::span(run.masters).subspan(i, 1), slots);
  }
  return run;
}

void ExpectBits(const std::vector<float>& got, const std::vector<float>& want, size_t offset,
                size_t length) {
  for (size_t i = 0; i < got.size(); ++i) {
    const bool inside = i >= offset && i < offset + length;
    const float wanted = inside ? want[i - offset] : kUntouched;
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(wanted))
        << "value " << i << " at offset " << offset << ", length " << length << ": expected "
        << wanted << ", got " << got[i];
  }
}

void ExpectBits(const Arrays& got, const Arrays& want, size_t offset, size_t length) {
  ExpectBits(got.sum, want.sum, offset, length);
  ExpectBits(got.masters, want.masters, offset, length);
  for (size_t slot = 0; slot < got.slots.size(); ++slot) {
    ExpectBits(got.slots[slot], want.slots[slot], offset, length);
  }
}

template <class Check>
void ForEachPlacement(const Check& check) {
  for (size_t length = 0; length <= kLongest; ++length) {
    for (size_t offset = 0; offset <= kLargestOffset; ++offset) {
      check(offset, length);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

void ExpectTheSameBitsEverywhere(const UpdateCase& update, const Arrays& drawn) {
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  Arrays first;
  int target_count = 0;
  for (int bit = 0; bit < 63; ++bit) {
    const int64_t target = int64_t{1} << bit;
    if ((targets & target) == 0) continue;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    if (target_count++ == 0) first = OneByOne(update, drawn);
    ForEachPlacement([&](size_t offset, size_t length) {
      ExpectBits(Run(update, drawn, offset, length), first, offset, length);
    });
    hwy::SetSupportedTargetsForTest(0);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GE(target_count, 1);
}

}  // namespace

void ExpectMatchesTheExactLoop(const UpdateCase& update) {
  const Arrays drawn = Draw(update.slot_count);
  const Arrays got = OneByOne(update, drawn);
  for (size_t i = 0; i < kLongest; ++i) {
    double master = drawn.masters[i];
    std::vector<double> slots;
    for (const auto& slot : drawn.slots) slots.push_back(slot[i]);
    update.exact(drawn.sum[i], master, slots);
    // The tolerance is not only relative, because a result may be a small difference of large terms
    // (each at most about 8), whose rounding errors are larger than those of the result.
    EXPECT_NEAR(got.masters[i], master, 4e-6 * (0.01 + std::abs(master))) << "value " << i;
    for (int slot = 0; slot < update.slot_count; ++slot) {
      EXPECT_NEAR(got.slots[slot][i], slots[slot], 4e-6 * (0.01 + std::abs(slots[slot])))
          << "slot " << slot << ", value " << i;
    }
  }
  ForEachPlacement([&](size_t offset, size_t length) {
    ExpectBits(Run(update, drawn, offset, length), got, offset, length);
  });
}

void ExpectTheSameBitsEverywhere(const UpdateCase& update) {
  ExpectTheSameBitsEverywhere(update, Draw(update.slot_count));
  if (update.saturates) ExpectTheSameBitsEverywhere(update, DrawExtreme(update.slot_count));
}

}  // namespace thinwire::kernels
