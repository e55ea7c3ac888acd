#include "common/text/bit_rate.h"

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace thinwire {
namespace {

constexpr double kLeastBits = 1e5;
constexpr double kMostBits = 1e12;

constexpr std::array<std::pair<const char*, double>, 3> kUnits = {
    {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}}};

}  // namespace

absl::StatusOr<double> ParseBitRate(const std::string& text) {
  const std::string lower = absl::AsciiStrToLower(text);
  for (const auto& [unit, bits] : kUnits) {
    absl::string_view number = lower;
    double count = 0;
    // SimpleAtod accepts spaces, signs, exponents and names such as inf.
    if (!absl::ConsumeSuffix(&number, unit) ||
        number.find_first_not_of("0123456789.") != absl::string_view::npos ||
        !absl::SimpleAtod(number, &count)) {
      continue;
    }
    if (count * bits >= kLeastBits && count * bits <= kMostBits) return count * bits / 8;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "wrong value (expected a rate from 100kbit to 1000gbit, such as 20mbit, got ", text, ")"));
}

}  // namespace thinwire
