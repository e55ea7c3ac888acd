// RandomRun: the run of a simulated cluster with a job, a task and faults that are drawn from a seed.
// When the faults have ended, every worker must finish. The ledgers (cluster_ledger.h) check the
// promises of docs/consistency.md and docs/recovery.md.
#ifndef THINWIRE_SIM_RANDOM_RUN_H_
#define THINWIRE_SIM_RANDOM_RUN_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "common/spec/job_spec.h"
#include "sim/cluster_ledger.h"
#include "sim/faults.h"
#include "sim/mutant.h"

namespace thinwire::sim {

inline constexpr const char* kModeNames[] = {"sync", "backup", "ssp", "async"};
inline constexpr const char* kDurabilityNames[] = {"none", "checkpoint", "log"};

// Return the positions in kModeNames and kDurabilityNames of a seed: a twelfth of the seeds has each
// mode and durability.
inline uint64_t ModeOf(uint64_t seed) { return seed % 4; }
inline Durability DurabilityOf(uint64_t seed) { return static_cast<Durability>(seed / 4 % 3); }

// From this seed on, the optimizer is lars or lamb. In sync and backup without a log, the shards of
// the servers share a large tensor. Divisible by 12.
inline constexpr uint64_t kFirstTrustSeed = 1'200'000'000;

// Returns the job of SEED.
JobSpec DrawSpec(uint64_t seed);

struct RandomRun {
  std::string violations;  // one line each; empty: none
  LedgerCounts counts;
  FaultCounts faults;
};

// Runs the cluster of SEED. STATE_DIR: an empty folder, where the workers save their residuals.
// TRACE receives one line per event; null: no trace.
RandomRun RunSeed(uint64_t seed, const std::string& state_dir, Mutant mutant = Mutant::kNone,
                  std::ostream* trace = nullptr);

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_RANDOM_RUN_H_
