#include "common/spec/publish_options.h"

#include "common/spec/codec_problems.h"

namespace thinwire {

Problems PublishOptions::Validate() const {
  if (!codec.has_value()) return {};
  return CodecProblems(*codec, {.density = "pull_density", .values = "pull_topk_values"});
}

std::ostream& operator<<(std::ostream& out, const PublishOptions& options) {
  out << "deltas ";
  if (options.codec.has_value()) {
    out << "in " << options.codec->id;
  } else {
    out << "exact";
  }
  return out << ", log of " << options.log_bytes << " bytes, every " << options.every;
}

}  // namespace thinwire
