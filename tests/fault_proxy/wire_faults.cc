#include "tests/fault_proxy/wire_faults.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace thinwire {
namespace {

absl::Status Wrong(std::string_view command, std::string_view expected, std::string_view got) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(command), ": wrong value (expected ",
                                                 std::string(expected), ", got \"",
                                                 std::string(got), "\")"));
}

// Parses a nonnegative finite number.
bool ParseNumber(std::string_view text, double* number) {
  return absl::SimpleAtod(std::string(text), number) && std::isfinite(*number) && *number >= 0;
}

bool ParseBandwidth(std::string_view text, double* bits_per_second) {
  if (text == "unlimited") {
    *bits_per_second = 0;
    return true;
  }
  constexpr std::pair<const char*, double> kUnits[] = {{"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}};
  for (const auto& [unit, factor] : kUnits) {
    absl::string_view number(text.data(), text.size());
    if (!absl::ConsumeSuffix(&number, unit)) continue;
    const bool parsed = ParseNumber(std::string(number), bits_per_second);
    *bits_per_second *= factor;
    return parsed && *bits_per_second > 0;
  }
  return false;
}

}  // namespace

absl::Status WireFaults::Apply(std::string_view command) {
  const std::vector<std::string> words =
      absl::StrSplit(std::string(command), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  const std::string name = words.empty() ? "" : words[0];
  const bool has_value = name != "half-open" && name != "restore";
  if (words.size() > (has_value ? 2 : 1)) {
    return Wrong(name, has_value ? "one word" : "no word",
                 absl::StrCat(words.size() - 1, " words"));
  }
  const std::string value = words.size() == 2 ? words[1] : "";
  if (name == "latency") {
    absl::Duration parsed;
    const bool ok = absl::ParseDuration(value, &parsed) && parsed >= absl::ZeroDuration() &&
                    parsed <= absl::Hours(1);
    if (!ok) return Wrong(name, "a duration from 0 to 1h such as 80ms", value);
    latency = parsed;
  } else if (name == "bandwidth") {
    double parsed = 0;
    if (!ParseBandwidth(value, &parsed)) {
      return Wrong(name, "a rate such as 500kbit, 10Mbit or 1Gbit, or unlimited", value);
    }
    bits_per_second = parsed;
  } else if (name == "slice") {
    size_t parsed = 0;
    const bool ok = absl::SimpleAtoi(value, &parsed) && parsed >= 1 && parsed <= (1 << 20);
    if (!ok) return Wrong(name, "a number of bytes from 1 to 1048576", value);
    slice_bytes = parsed;
  } else if (name == "reset_rate") {
    double parsed = 0;
    if (!ParseNumber(value, &parsed)) return Wrong(name, "resets per second, at least 0", value);
    reset_rate = parsed;
  } else if (name == "cut") {
    if (value != "up" && value != "down" && value != "both") {
      return Wrong(name, "up, down or both", value);
    }
    if (value != "down") cut_up = true;
    if (value != "up") cut_down = true;
  } else if (name == "half-open") {
    half_open = true;
  } else if (name == "restore") {
    cut_up = cut_down = half_open = false;
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "command: unknown (expected latency, bandwidth, slice, reset_rate, cut, half-open, restore "
        "or reset, got \"",
        name, "\")"));
  }
  return absl::OkStatus();
}

absl::Time Link::Depart(absl::Time now, size_t bytes, double bits_per_second) {
  free_at_ = std::max(free_at_, now);
  if (bits_per_second > 0) {
    free_at_ += absl::Seconds(8.0 * static_cast<double>(bytes) / bits_per_second);
  }
  return free_at_;
}

}  // namespace thinwire
