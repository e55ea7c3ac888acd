#include "config/connection_flags.h"

#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/text/bit_rate.h"

namespace thinwire {

Flag AddAddresses(CommandFlags& command, ConnectionFlags& flags, const std::string& note) {
  return command
      .Add("--addresses", flags.addresses,
           absl::StrCat(
               "host:port of every server, in the order of their numbers, separated by commas",
               note))
      .Type("LIST")
      .Environment("THINWIRE_ADDRESSES");
}

Flag AddCredentials(CommandFlags& command, ConnectionFlags& flags, const std::string& owner,
                    const std::string& note) {
  return command
      .Add("--credentials", flags.credentials,
           absl::StrCat("The folder with ", owner, owner.empty() ? "" : " ",
                        "ca.pem, cert.pem and key.pem (thinwire certs)", note))
      .Type("DIR")
      .Environment("THINWIRE_CREDENTIALS");
}

Flag AddInsecure(CommandFlags& command, ConnectionFlags& flags, const std::string& help) {
  return command.AddSwitch("--insecure", flags.insecure, help).Environment("THINWIRE_INSECURE");
}

void AddBandwidth(CommandFlags& command, BandwidthFlags& flags, const std::string& owner) {
  const std::string unit =
      ", in decimal bits per second, such as 500kbit, 20mbit or 1gbit. Heartbeats and other "
      "control calls are not counted. Default: no limit";
  command
      .Add("--uplink", flags.uplink,
           absl::StrCat("The most bytes that ", owner, " may send on average", unit))
      .Type("RATE")
      .Environment("THINWIRE_UPLINK");
  command
      .Add("--downlink", flags.downlink,
           absl::StrCat("The most bytes that ", owner, " may receive on average", unit))
      .Type("RATE")
      .Environment("THINWIRE_DOWNLINK");
  command
      .Add("--price_per_gb", flags.price_per_gb,
           "The price of 10^9 bytes that leave a process, in any currency. Reports, pages and "
           "metrics then show the bill. Default: no bill")
      .Type("PRICE")
      .Between(0.0, 1e6)
      .Environment("THINWIRE_PRICE_PER_GB");
}

absl::StatusOr<BandwidthRates> RatesOf(const BandwidthFlags& flags) {
  BandwidthRates rates;
  for (const auto& [name, text, rate] :
       {std::tuple("--uplink: ", &flags.uplink, &rates.up),
        std::tuple("--downlink: ", &flags.downlink, &rates.down)}) {
    if (text->empty()) continue;
    const absl::StatusOr<double> parsed = ParseBitRate(*text);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(name, parsed.status().message()));
    }
    *rate = *parsed;
  }
  return rates;
}

std::vector<std::string> LimitFlags(const BandwidthFlags& flags) {
  std::vector<std::string> words;
  if (!flags.uplink.empty()) words.insert(words.end(), {"--uplink", flags.uplink});
  if (!flags.downlink.empty()) words.insert(words.end(), {"--downlink", flags.downlink});
  return words;
}

}  // namespace thinwire
