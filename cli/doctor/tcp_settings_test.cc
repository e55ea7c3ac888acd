#include "cli/doctor/tcp_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(TcpSettingsTest, AreReadFromTheKernelsFiles) {
  const std::string dir = testing::TempDir();
  std::ofstream(dir + "/tcp_congestion_control") << "cubic\n";
  EXPECT_FALSE(ReadTcpSettings(dir).has_value());
  for (const bool slow : {false, true}) {
    std::ofstream(dir + "/tcp_slow_start_after_idle") << slow << "\n";
    const std::optional<TcpSettings> settings = ReadTcpSettings(dir);
    ASSERT_TRUE(settings.has_value());
    EXPECT_EQ(settings->congestion_control, "cubic");
    EXPECT_EQ(settings->slow_start_after_idle, slow);
  }
  EXPECT_FALSE(ReadTcpSettings(dir + "/absent").has_value());
}

TEST(TcpSettingsTest, NothingIsAdvisedForAShortRoundTripOrForBbr) {
  EXPECT_THAT(TcpAdvice({"cubic", true}, absl::Milliseconds(2)), IsEmpty());
  EXPECT_THAT(TcpAdvice({"bbr", true}, absl::Milliseconds(200)), IsEmpty());
}

TEST(TcpSettingsTest, TheAdviceNamesTheSettings) {
  const absl::Duration far = absl::Milliseconds(100);
  EXPECT_THAT(TcpAdvice({"cubic", true}, far),
              ElementsAre(HasSubstr("tcp_congestion_control=bbr, got cubic"),
                          HasSubstr("tcp_slow_start_after_idle=0")));
  EXPECT_THAT(TcpAdvice({"reno", false}, far), ElementsAre(HasSubstr("got reno")));
}

}  // namespace
}  // namespace thinwire
