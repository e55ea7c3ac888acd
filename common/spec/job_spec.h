// JobSpec describes a whole job. config/ makes a JobSpec from a job file and flags; servers and
// workers read the parts that they need. Immutable.
#ifndef THINWIRE_COMMON_SPEC_JOB_SPEC_H_
#define THINWIRE_COMMON_SPEC_JOB_SPEC_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/codec/table.h"
#include "common/spec/group_spec.h"
#include "common/spec/optimizer_spec.h"
#include "common/spec/publish_options.h"
#include "common/spec/push_spec.h"
#include "common/spec/recovery_spec.h"
#include "common/spec/rule.h"
#include "common/spec/schedule_spec.h"
#include "common/spec/sparse_update_spec.h"
#include "common/spec/staleness_spec.h"
#include "common/spec/task_spec.h"
#include "common/text/problems.h"

namespace thinwire {

// A delay that is added to every step of one worker, to imitate a slow machine.
struct Straggler {
  WorkerId worker;
  absl::Duration delay;

  bool operator==(const Straggler&) const = default;
};

struct JobSpec {
  std::string name = "train";
  uint32_t server_count = 1;
  Rule rule;
  // The processes of one worker, which own different tensors (docs/model_parallel.md).
  uint32_t members = 1;
  // The lead changes the number of backup workers (mode backup) or the slack (mode ssp) at run
  // time.
  bool auto_rule = false;
  StalenessSpec staleness;
  absl::Duration lease = absl::Seconds(10);
  absl::Duration start_timeout = absl::Seconds(60);
  absl::Duration drain = absl::Seconds(30);  // from SIGTERM to the end of a worker
  OptimizerSpec optimizer;
  double clip_norm = 0;  // the largest norm of an update's averaged gradient; 0: no limit
  ScheduleSpec schedule;
  SparseUpdateSpec sparse_updates;
  PushSpec push;
  std::vector<GroupSpec> groups;  // in the order of the job file, without group 0
  // If set, workers read parameters as published deltas; otherwise as whole parameters, encoded
  // with PULL_CODEC.
  std::optional<PublishOptions> publish;
  CodecId pull_codec = CodecId::kFp32;
  uint64_t shard_size = 0;  // most values in a shard; 0: the default of common/model/partition.h
  TaskSpec task;
  absl::Duration silence = absl::Seconds(10);  // a worker exits if a server is silent this long
  RecoverySpec recovery;
  std::vector<Straggler> stragglers;
  std::string report;  // the report file of `thinwire train`; empty: no report

  // Checks every part of the job. Refuses combinations of settings that cancel each other or that
  // diverged in measurements (docs/deltas.md).
  Problems Validate() const;
  // Returns what Validate allows, but only in virtual time: the settings that servers and workers in
  // processes of their own cannot carry out.
  Problems ProcessProblems() const;
  // Returns all parameter groups. Group 0 has the job's settings and contains the tensors that no
  // other group matches. With several members, tensors share no shards, so that each shard has one
  // owner.
  std::vector<GroupSpec> AllGroups() const;
  // Returns the delay that `stragglers` add to every step of WORKER.
  absl::Duration DelayOf(WorkerId worker) const;
  // Returns a warning for each setting that is valid but does not have the effect that it is for.
  Problems Warnings() const;

  bool operator==(const JobSpec&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const JobSpec& spec);
};

// Returns the settings of a job that are not allowed in the mode of RULE. GROWS_BATCH:
// ScheduleSpec::grows_batch. CLIP_NORM: JobSpec::clip_norm.
Problems ModeProblems(const Rule& rule, const SparseUpdateSpec& sparse_updates,
                      const std::optional<PublishOptions>& publish, const StalenessSpec& staleness,
                      bool grows_batch, double clip_norm);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_JOB_SPEC_H_
