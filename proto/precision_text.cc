#include "proto/precision_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace thinwire {

std::string ChosenText(const PrecisionDecision& decision) {
  return decision.has_layers() ? absl::StrCat(decision.chosen(), " for ", decision.layers())
                               : decision.chosen();
}

std::string CandidatesText(const PrecisionDecision& decision) {
  std::string text;
  for (const PrecisionDecision::Candidate& candidate : decision.candidate()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", candidate.name());
    if (!candidate.has_predicted_accuracy()) {
      absl::StrAppendFormat(&text, " removed (encoding error %.3g)", candidate.encoding_error());
      continue;
    }
    absl::StrAppendFormat(&text, " %.1f +- %.1f %% at %.3g s a step",
                          100 * candidate.predicted_accuracy(), 100 * candidate.deviation(),
                          candidate.seconds_per_step());
  }
  return text;
}

}  // namespace thinwire
