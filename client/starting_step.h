// The step that a worker begins with after Join: behind nobody, and with no open round to hold
// back. A pure function of what the servers said.
#ifndef THINWIRE_CLIENT_STARTING_STEP_H_
#define THINWIRE_CLIENT_STARTING_STEP_H_

#include <span>

#include "common/ids.h"
#include "proto/control.pb.h"

namespace thinwire::client {

// max(largest next, largest frontier), the latter plus one if rounds close by step and any shard is
// open: the open round goes on without the newcomer.
Step StartingStep(std::span<const JoinReply> replies);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_STARTING_STEP_H_
