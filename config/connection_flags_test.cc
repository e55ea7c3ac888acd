#include "config/connection_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(RatesOf, ReturnsBytesPerSecond) {
  EXPECT_EQ(RatesOf({}).value(), BandwidthRates());
  EXPECT_EQ(RatesOf({.uplink = "20mbit", .downlink = "1gbit"}).value(),
            (BandwidthRates{.up = 2.5e6, .down = 1.25e8}));
}

TEST(RatesOf, NamesTheWrongFlag) {
  EXPECT_EQ(RatesOf({.uplink = "fast"}).status().message(),
            "--uplink: wrong value (expected a rate from 100kbit to 1000gbit, such as 20mbit, got "
            "fast)");
  EXPECT_EQ(
      RatesOf({.uplink = "1mbit", .downlink = "5"}).status().message(),
      "--downlink: wrong value (expected a rate from 100kbit to 1000gbit, such as 20mbit, got "
      "5)");
}

TEST(LimitFlags, HasTheGivenLimits) {
  EXPECT_THAT(LimitFlags({.price_per_gb = 1}), IsEmpty());
  EXPECT_THAT(LimitFlags({.uplink = "20mbit"}), ElementsAre("--uplink", "20mbit"));
  EXPECT_THAT(LimitFlags({.uplink = "1mbit", .downlink = "2mbit"}),
              ElementsAre("--uplink", "1mbit", "--downlink", "2mbit"));
}

}  // namespace
}  // namespace thinwire
