#include "server/core/optimizer/power_table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace thinwire {
namespace {

TEST(PowerTableTest, MatchesPowToWithinRounding) {
  for (double base : {0.5, 0.9, 0.999, 0.999999, 1.0}) {
    const PowerTable table(base);
    for (uint32_t n : {1u, 2u, 63u, 64u, 65u, 127u, 128u, 4095u, 4096u, 4097u, 1000000u}) {
      const double want = std::pow(base, n);
      EXPECT_NEAR(table.Of(n), want, 1e-12 * want) << base << "^" << n;
    }
  }
}

TEST(PowerTableTest, PowerZeroIsExactlyOne) {
  for (double base : {0.0, 0.9, 1.0, -2.0}) EXPECT_EQ(PowerTable(base).Of(0), 1);
}

TEST(PowerTableTest, PowersOfZeroAndOneAreExact) {
  for (uint32_t n : {1u, 64u, 5000u, 0xffffffffu}) {
    EXPECT_EQ(PowerTable(0).Of(n), 0);
    EXPECT_EQ(PowerTable(1).Of(n), 1);
  }
}

}  // namespace
}  // namespace thinwire
