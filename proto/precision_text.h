// The text of a decision of adaptive precision, for logs and reports.
#ifndef THINWIRE_PROTO_PRECISION_TEXT_H_
#define THINWIRE_PROTO_PRECISION_TEXT_H_

#include <string>

#include "proto/precision.pb.h"

namespace thinwire {

// Returns the predicted test accuracies of the candidates at the next decision, with their standard
// deviations: "fp32 71.2 +- 1.0 % at 0.52 s a step, fp8_e5m2 70.9 +- 1.1 % at 0.31 s a step".
std::string CandidatesText(const PrecisionDecision& decision);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_PRECISION_TEXT_H_
