#include "client/options.h"

#include "absl/strings/str_cat.h"

namespace thinwire {

absl::Status CheckOptions(const ClientOptions& options) {
  // NaN is neither.
  if (!(options.gradient_clip >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient_clip: want a number of 0 or more, got ", options.gradient_clip));
  }
  if (!(options.correction.momentum >= 0 && options.correction.momentum < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "correction momentum: want a number from 0 to below 1, got ", options.correction.momentum));
  }
  if (options.pull.has_value() && !CarriesParameters(*options.pull)) {
    return absl::InvalidArgumentError(absl::StrCat("pull: want a codec of parameters, got ",
                                                   std::string(CodecName(*options.pull))));
  }
  if (options.silence <= absl::ZeroDuration() ||
      options.heartbeat_interval <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("silence and heartbeat_interval: want more than 0 s, got ",
                     absl::FormatDuration(options.silence), " and ",
                     absl::FormatDuration(options.heartbeat_interval)));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
