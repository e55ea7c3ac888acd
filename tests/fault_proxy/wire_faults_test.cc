#include "tests/fault_proxy/wire_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TEST(WireFaultsTest, EveryCommandSetsItsFault) {
  WireFaults faults;
  for (const char* command : {"latency 80ms", "bandwidth 10Mbit", "slice 1400", "reset_rate 0.01",
                              "cut up", "half-open"}) {
    EXPECT_EQ(faults.Apply(command), absl::OkStatus());
  }
  const WireFaults expected = {.latency = absl::Milliseconds(80),
                               .bits_per_second = 1e7,
                               .slice_bytes = 1400,
                               .reset_rate = 0.01,
                               .cut_up = true,
                               .half_open = true};
  EXPECT_EQ(faults, expected);
}

TEST(WireFaultsTest, ACutNamesItsDirection) {
  WireFaults both;
  EXPECT_EQ(both.Apply("cut both"), absl::OkStatus());
  EXPECT_TRUE(both.cut_up && both.cut_down);
  WireFaults down;
  EXPECT_EQ(down.Apply("cut down"), absl::OkStatus());
  EXPECT_TRUE(!down.cut_up && down.cut_down);
}

TEST(WireFaultsTest, RestoreKeepsLatencyAndBandwidth) {
  WireFaults faults;
  const WireFaults slow = {.latency = absl::Seconds(1), .bits_per_second = 5e5};
  for (const char* command :
       {"latency 1s", "bandwidth 500kbit", "cut both", "half-open", "restore"}) {
    EXPECT_EQ(faults.Apply(command), absl::OkStatus());
  }
  EXPECT_EQ(faults, slow);
  EXPECT_EQ(faults.Apply("bandwidth unlimited"), absl::OkStatus());
  EXPECT_EQ(faults.bits_per_second, 0);
}

TEST(WireFaultsTest, AWrongCommandChangesNothingAndNamesTheExpectedValue) {
  const std::pair<const char*, const char*> cases[] = {
      {"latency", "latency: wrong value (expected a duration from 0 to 1h such as 80ms, got \"\")"},
      {"latency -1s", "got \"-1s\""},
      {"latency 2h", "got \"2h\""},
      {"bandwidth 10",
       "expected a rate such as 500kbit, 10Mbit or 1Gbit, or unlimited, got \"10\""},
      {"bandwidth 0Mbit", "got \"0Mbit\""},
      {"bandwidth nanMbit", "got \"nanMbit\""},
      {"slice 0", "expected a number of bytes from 1 to 1048576, got \"0\""},
      {"reset_rate -1", "expected resets per second, at least 0, got \"-1\""},
      {"cut sideways", "expected up, down or both, got \"sideways\""},
      {"cut up down", "cut: wrong value (expected one word, got \"2 words\")"},
      {"restore all", "restore: wrong value (expected no word, got \"1 words\")"},
      {"explode", "command: unknown (expected latency, bandwidth, slice, "},
      {"", "got \"\""}};
  for (const auto& [command, expected] : cases) {
    WireFaults faults;
    EXPECT_THAT(std::string(faults.Apply(command).message()), HasSubstr(expected)) << command;
    EXPECT_EQ(faults, WireFaults()) << command;
  }
}

TEST(LinkTest, BytesLeaveOneAfterTheOther) {
  const absl::Time start = absl::UnixEpoch();
  Link link;
  EXPECT_EQ(link.Depart(start, 1000, 8000), start + absl::Seconds(1));
  EXPECT_EQ(link.Depart(start, 500, 8000), start + absl::Seconds(1.5));
  // After an idle time, bytes leave at once.
  EXPECT_EQ(link.Depart(start + absl::Seconds(10), 1000, 8000), start + absl::Seconds(11));
}

TEST(LinkTest, AnUnlimitedLinkDelaysNothing) {
  Link link;
  EXPECT_EQ(link.Depart(absl::UnixEpoch(), 1 << 30, 0), absl::UnixEpoch());
}

}  // namespace
}  // namespace thinwire
