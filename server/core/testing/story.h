// Story: a shard's history as text, each line an event and what followed from it.
//
//   w0 join        -> shut at 0
//   seed 10        -> nothing
//   w0 read 0      -> opens; w0 begins 0
//   w0 push 0 x2 4 -> accept; round 0 of w0; version 1 is 6; w0 begins 1
//
// The shard has one value, rate 1 and plain descent, so version 1 is 10 - 4. The words of an event:
//
//   seed VALUE | open | waits
//   wN join | read STEP | expire | return | leave
//   wN push STEP xEXAMPLES[+LATE] VALUE | push STEP nothing
//   wN/INCARNATION ...     an event of that incarnation; else of the one that joined last
//
// A join takes the worker's next incarnation. "waits" is no event: it shows what Shard::Waits says.
#ifndef THINWIRE_SERVER_CORE_TESTING_STORY_H_
#define THINWIRE_SERVER_CORE_TESTING_STORY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/spec/rule.h"

namespace thinwire {

// Tells the events of STORY to a new shard and returns the story as it went: equal to STORY if
// STORY is true. Blank lines and indentation are kept out of both.
std::string Retell(const Rule& rule, absl::string_view story);

// STORY without blank lines and indentation, to compare with.
std::string Plain(absl::string_view story);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_STORY_H_
