#include "common/spec/publish_options.h"

#include <string>

namespace thinwire {

Problems PublishOptions::Validate() const {
  if (!codec.has_value()) return {};
  // The codec of pulls has its own density and value codec, whose job file fields begin with
  // "pull_". Pulls and pushes share the other codec settings.
  Problems problems;
  const Problems found = codec->Validate();
  for (const Problem& problem : found.list()) {
    const bool of_pull = problem.field == "density" || problem.field == "topk_values";
    problems.Add(of_pull ? "pull_" + problem.field : problem.field, problem.text);
  }
  return problems;
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
