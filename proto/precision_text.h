// The text of a decision of adaptive precision, for logs and reports.
#ifndef THINWIRE_PROTO_PRECISION_TEXT_H_
#define THINWIRE_PROTO_PRECISION_TEXT_H_

#include <string>

#include "proto/precision.pb.h"

namespace thinwire {

// Returns the chosen candidate: "fp8_e5m2", or "fp8_e5m2 for matrices".
std::string ChosenText(const PrecisionDecision& decision);
// Returns the predicted test accuracies of the candidates at the next decision, with their standard
// deviations: "fp32 71.2 +- 1.0 % at 0.52 s a step, table_1 removed (encoding error 1.3)".
std::string CandidatesText(const PrecisionDecision& decision);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_PRECISION_TEXT_H_
