#include "cli/doctor/tcp_settings.h"

#include <fstream>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// Slow start takes a round trip per doubling of the window, from about 15 kB. Below this round
// trip, that is short beside a step.
constexpr absl::Duration kShortRoundTrip = absl::Milliseconds(10);

std::optional<std::string> ReadWord(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  return word;
}

}  // namespace

std::optional<TcpSettings> ReadTcpSettings(const std::string& dir) {
  const auto congestion_control = ReadWord(dir + "/tcp_congestion_control");
  const auto after_idle = ReadWord(dir + "/tcp_slow_start_after_idle");
  if (!congestion_control.has_value() || !after_idle.has_value()) return std::nullopt;
  return TcpSettings{.congestion_control = *congestion_control,
                     .slow_start_after_idle = *after_idle != "0"};
}

std::vector<std::string> TcpAdvice(const TcpSettings& settings, absl::Duration round_trip) {
  // BBR sends at the rate that it has measured, also after a loss or an idle time.
  if (round_trip < kShortRoundTrip || settings.congestion_control == "bbr") return {};
  std::vector<std::string> advice;
  advice.reserve(2);
  advice.push_back(
      absl::StrCat("slow after a loss (expected net.ipv4.tcp_congestion_control=bbr, got ",
                   settings.congestion_control, ")"));
  if (settings.slow_start_after_idle) {
    advice.emplace_back(
        "slow after an idle time (expected bbr or net.ipv4.tcp_slow_start_after_idle=0)");
  }
  return advice;
}

}  // namespace thinwire
