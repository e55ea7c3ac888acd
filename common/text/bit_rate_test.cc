#include "common/text/bit_rate.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(ParseBitRate, ReturnsBytesPerSecond) {
  EXPECT_EQ(ParseBitRate("500kbit").value_or(0), 62'500);
  EXPECT_EQ(ParseBitRate("20mbit").value_or(0), 2'500'000);
  EXPECT_EQ(ParseBitRate("1gbit").value_or(0), 125'000'000);
  EXPECT_EQ(ParseBitRate("1.5Gbit").value_or(0), 187'500'000);
  EXPECT_EQ(ParseBitRate("100kbit").value_or(0), 12'500);
  EXPECT_EQ(ParseBitRate("1000gbit").value_or(0), 125e9);
}

TEST(ParseBitRate, RefusesOtherTexts) {
  for (const char* text : {"", "20", "mbit", "20mb", "20mbits", "20 mbit", "-20mbit", "+20mbit",
                           "2e1mbit", "infgbit", "nanmbit", "0x10mbit", "1.2.3mbit", ".mbit",
                           "99kbit", "0mbit", "1001gbit", "20MB/s", "20mbit "}) {
    const auto rate = ParseBitRate(text);
    ASSERT_FALSE(rate.ok()) << text;
    EXPECT_EQ(rate.status().message(),
              std::string("wrong value (expected a rate from 100kbit to 1000gbit, such as 20mbit, "
                          "got ") +
                  text + ")");
  }
}

}  // namespace
}  // namespace thinwire
