#include "proto/precision_text.h"

#include "absl/strings/str_format.h"

namespace thinwire {

std::string CandidatesText(const PrecisionDecision& decision) {
  std::string text;
  for (const PrecisionDecision::Candidate& candidate : decision.candidate()) {
    absl::StrAppendFormat(&text, "%s%s %.1f +- %.1f %% at %.3g s a step", text.empty() ? "" : ", ",
                          candidate.name(), 100 * candidate.predicted_accuracy(),
                          100 * candidate.deviation(), candidate.seconds_per_step());
  }
  return text;
}

}  // namespace thinwire
