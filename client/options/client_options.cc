#include "client/options/client_options.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text/problems.h"

namespace thinwire {

absl::Status CheckOptions(const ClientOptions& options) {
  Problems problems = PushSpec{.codec = options.push,
                               .choose = options.choose,
                               .candidates = options.candidates,
                               .error_feedback = options.error_feedback,
                               .residual_decay = options.residual_decay,
                               .warmup = options.warmup,
                               .correction = options.correction,
                               .gradient_clip = options.gradient_clip}
                          .Validate();
  if (options.pull.has_value() && !CarriesParameters(*options.pull)) {
    problems.Add("pull", absl::StrCat("not a codec of parameters (got ",
                                      std::string(CodecName(*options.pull)), ")"));
  }
  for (const auto& [field, value] :
       {std::pair("start_timeout", options.start_timeout), std::pair("silence", options.silence),
        std::pair("heartbeat_interval", options.heartbeat_interval)}) {
    problems.Require(value > absl::ZeroDuration(), field, "above 0s", absl::FormatDuration(value));
  }
  return problems.ToStatus();
}

}  // namespace thinwire
