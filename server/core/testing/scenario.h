// A scenario is a text that describes a sequence of events of a shard. Each line contains an event
// and, after the arrow, the effects of this event.
//
//   start 10       -> opens; w0 begins 0; w1 begins 0
//   w0 push 0 x2 4 -> accept
//   w1 push 0 x2 8 -> accept; round 0 of w0 w1; version 1 is 4; w0 begins 1; w1 begins 1
//
// The shard has one value and uses gradient descent with learning rate 1, so the value of version 1
// is 10 - (2 * 4 + 2 * 8) / 4 = 4. The events are:
//
//   start VALUE            all workers join, VALUE arrives as the seed, all workers read step 0
//   seed VALUE             VALUE arrives as the seed, the shard's initial value
//   open                   the start timeout runs out
//   rule MODE from STEP    MODE is sync, async, `backup B` or `ssp SLACK`, for all workers
//   wN join                worker N joins with its next incarnation
//   wN read STEP           worker N requests the parameters for step STEP
//   wN expire              the lease of worker N runs out
//   wN return              a message of worker N arrives after its lease has run out
//   wN leave               worker N leaves the job
//   wN push STEP xEXAMPLES VALUE        worker N pushes the gradient VALUE of EXAMPLES examples
//   wN push STEP xEXAMPLES+LATE VALUE   VALUE contains late pushes of LATE examples
//   wN push STEP xEXAMPLES VALUE from VERSION   VALUE was computed from VERSION; default: version 0
//   wN push STEP nothing   worker N pushes no gradient (weight 0)
//   wN/INCARNATION ...     an event of INCARNATION instead of the worker's newest incarnation
//   waits                  no event; prints Shard::BlockedReads()
//
// With the staleness policy dcasgd, the shard publishes every update as a delta in fp16, and its
// version log holds one delta.
//
// Among the effects, "round 0 of w0 w1" means that the round of step 0 closes with the gradients of
// workers 0 and 1, and "w0 begins 1" that worker 0 receives the parameters for step 1. `start`
// prints the effects of its last event only.
#ifndef THINWIRE_SERVER_CORE_TESTING_SCENARIO_H_
#define THINWIRE_SERVER_CORE_TESTING_SCENARIO_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/spec/rule.h"
#include "common/spec/staleness_spec.h"

namespace thinwire {

// Applies the events of SCENARIO to a new shard. Returns the normalized scenario with the actual
// effects in place of the expected ones. The result equals Normalize(scenario) if all expected
// effects are correct.
std::string RunScenario(const Rule& rule, absl::string_view scenario,
                        const StalenessSpec& staleness = {});

// Returns SCENARIO without blank lines and indentation.
std::string Normalize(absl::string_view scenario);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_SCENARIO_H_
