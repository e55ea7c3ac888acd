#include "client/options/client_options.h"

#include "absl/strings/str_cat.h"

namespace thinwire {

absl::Status CheckOptions(const ClientOptions& options) {
  // NaN fails both comparisons.
  if (!(options.gradient_clip >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient_clip: must not be negative (expected 0 or more, got ",
                     options.gradient_clip, ")"));
  }
  if (!(options.correction.momentum >= 0 && options.correction.momentum < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("correction.momentum: out of range (expected 0 or more and below 1, got ",
                     options.correction.momentum, ")"));
  }
  if (options.pull.has_value() && !CarriesParameters(*options.pull)) {
    return absl::InvalidArgumentError(
        absl::StrCat("pull: not a codec for parameters (expected a dense codec of 8 bits or more, "
                     "got ",
                     std::string(CodecName(*options.pull)), ")"));
  }
  if (options.silence <= absl::ZeroDuration() ||
      options.heartbeat_interval <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("silence and heartbeat_interval: must be positive (expected more than 0 s, "
                     "got ",
                     absl::FormatDuration(options.silence), " and ",
                     absl::FormatDuration(options.heartbeat_interval), ")"));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
