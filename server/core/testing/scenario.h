// Scenarios describe the events of a shard as text. Each line is an event and, after the arrow, its
// effects.
//
//   start 10       -> opens; w0 begins 0; w1 begins 0
//   w0 push 0 x2 4 -> accept
//   w1 push 0 x2 8 -> accept; round 0 of w0 w1; version 1 is 4; w0 begins 1; w1 begins 1
//
// The shard has one value, rate 1 and plain gradient descent, so version 1 is 10 - 6. The events
// are:
//
//   start VALUE            all workers join, VALUE arrives as the seed, all workers read step 0
//   seed VALUE             VALUE arrives as the seed
//   open                   the start timeout has passed
//   wN join                worker N joins; likewise wN expire, wN return, wN leave
//   wN read STEP           worker N reads the parameters of STEP
//   wN push STEP xEXAMPLES[+LATE] VALUE
//                          worker N pushes VALUE with this number of examples and late examples
//   wN push STEP nothing   worker N pushes without values, with weight 0
//   wN/INCARNATION ...     an event of that incarnation instead of the worker's last one
//   waits                  no event; shows Shard::BlockedReads()
//
// A join takes the worker's next incarnation. `start` shows the effects of its last event.
#ifndef THINWIRE_SERVER_CORE_TESTING_SCENARIO_H_
#define THINWIRE_SERVER_CORE_TESTING_SCENARIO_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/spec/rule.h"

namespace thinwire {

// Applies the events of SCENARIO to a new shard and returns the scenario with the actual effects,
// normalized. The result equals Normalize(scenario) if the expected effects are right.
std::string RunScenario(const Rule& rule, absl::string_view scenario);

// Returns SCENARIO without blank lines and indentation.
std::string Normalize(absl::string_view scenario);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_SCENARIO_H_
