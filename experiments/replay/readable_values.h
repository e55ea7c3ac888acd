// The parameters that readers of a shard receive, for runs without servers.
#ifndef THINWIRE_EXPERIMENTS_REPLAY_READABLE_VALUES_H_
#define THINWIRE_EXPERIMENTS_REPLAY_READABLE_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/spec/job_spec.h"
#include "server/core/shard.h"

namespace thinwire::lab {

// Return the version and the values of the parameters that SHARD, of a job JOB, sends to its readers
// now.
Version ReadableVersion(const Shard& shard, const JobSpec& job);
std::vector<float> ReadableValues(Shard& shard, const JobSpec& job, size_t value_count);
// Returns the bytes of these parameters for a reader that holds version HELD; nullopt: nothing.
uint64_t ReadBytes(Shard& shard, const JobSpec& job, std::optional<Version> held);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_REPLAY_READABLE_VALUES_H_
