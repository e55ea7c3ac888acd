// Retention decides which checkpoints of a folder a server keeps, from their manifests
// (docs/checkpoint.md#writing). Pure functions.
#ifndef THINWIRE_SERVER_DURABLE_RETENTION_H_
#define THINWIRE_SERVER_DURABLE_RETENTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/spec/recovery_spec.h"
#include "proto/checkpoint.pb.h"
#include "server/durable/test_result.h"

namespace thinwire {

// A checkpoint of a folder. Functions below that take some of them REQUIRE the order of writing.
struct ListedCheckpoint {
  std::string name;
  std::optional<CheckpointManifest> manifest;  // nullopt: damaged
};

// The checkpoints that are kept, in addition to the newest healthy one and the one before the last
// change of the mode, from which an operator can go back if the change was wrong.
struct KeptCheckpoints {
  RetentionSpec retention;
  std::vector<Step> steps;  // the newest checkpoint of each of these steps, if there is one
};

// A checkpoint from which all servers of a job can continue together.
struct AlignedCheckpoint {
  Step step;
  std::string name;
};

// Returns those of CHECKPOINTS that have a step, in ascending order of their steps. Leaves a
// checkpoint out if a later one has its step, or if a later generation has rolled its generation
// back to an earlier step.
std::vector<AlignedCheckpoint> AlignedCheckpoints(const std::vector<ListedCheckpoint>& checkpoints);

// A checkpoint that was made after a test.
struct TestedCheckpoint {
  TestResult test;
  std::string name;
  std::optional<Step> step;  // nullopt: its shards have different steps
};

// Returns those of CHECKPOINTS with a test, the best test first; of checkpoints with the same test
// the newest. Leaves those out whose generation was rolled back to an earlier step.
std::vector<TestedCheckpoint> TestedCheckpoints(const std::vector<ListedCheckpoint>& checkpoints);

// Returns the first of STEPS, which ascend, at or after each multiple of EVERY above 0. EVERY 0: no
// step.
std::vector<Step> FirstSteps(const std::vector<Step>& steps, uint64_t every);
// Returns the steps of the first COUNT of TESTED that have one of STEPS.
std::vector<Step> BestSteps(const std::vector<TestedCheckpoint>& tested,
                            const std::vector<Step>& steps, size_t count);

// Returns the names of those of CHECKPOINTS that are to be kept.
std::set<std::string> NamesToKeep(const std::vector<ListedCheckpoint>& checkpoints,
                                  const KeptCheckpoints& kept);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_RETENTION_H_
