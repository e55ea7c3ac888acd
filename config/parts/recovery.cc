#include "config/parts/recovery.h"

#include "absl/time/time.h"

namespace thinwire {

RecoverySpec RecoverySpecOf(const Recovery& r) {
  return {.durability = static_cast<Durability>(r.durability()),
          .checkpoint_interval = absl::Seconds(r.checkpoint_seconds()),
          .failure_interval = absl::Seconds(r.failure_seconds()),
          .server_return = absl::Seconds(r.server_return_seconds()),
          .keep_log = r.keep_log(),
          .retention = {.newest_count = r.keep_checkpoints(), .every = r.keep_every()}};
}

std::vector<Condition> RecoveryConditions() {
  return {
      {{"checkpoint_seconds", "server_return_seconds", "keep_checkpoints", "keep_every"},
       [](const JobConfig& c) { return c.recovery().durability() != Recovery::Durability::none; },
       "durability: checkpoint or log",
       {"durability"}},
      {{"failure_seconds"},
       [](const JobConfig& c) {
         return c.recovery().durability() != Recovery::Durability::none &&
                c.recovery().has_checkpoint_seconds() && c.recovery().checkpoint_seconds() == 0;
       },
       "checkpoint_seconds: 0",
       {"checkpoint_seconds"}},
      {{"keep_log"},
       [](const JobConfig& c) { return c.recovery().durability() == Recovery::Durability::log; },
       "durability: log",
       {"durability"}},
  };
}

}  // namespace thinwire
