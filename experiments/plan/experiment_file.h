// Reads an experiment file (proto/experiment.proto in protobuf's text format) and plans its runs.
//
// The cases of an experiment are all combinations of one setting of each axis; the last axis
// changes fastest. Every case runs once per seed. Later parts replace earlier ones, field by field;
// a repeated field is replaced as a whole:
//
//   job, machines  <  quick.job, quick.machines (with --quick)  <  axis[i].setting[j], in the order of the axes
//
// A problem names its place in the file, and its case if it depends on the case:
//
//   staleness.textproto:31:7: slack: only valid with mode: ssp (got mode: sync) [case mode=sync]
#ifndef THINWIRE_EXPERIMENTS_PLAN_EXPERIMENT_FILE_H_
#define THINWIRE_EXPERIMENTS_PLAN_EXPERIMENT_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/cluster/run.h"
#include "proto/experiment.pb.h"

namespace thinwire::lab {

// The largest number of runs of an experiment.
inline constexpr uint64_t kMostRuns = 10000;

struct PlanOptions {
  bool quick = false;
  std::vector<std::string> only;  // "AXIS=SETTING": leaves out the other settings of the axis
  std::optional<uint32_t> seeds;  // replaces the seeds of the file
};

struct PlannedRun {
  std::vector<std::string> settings;  // the names of the case's settings, one per axis
  uint64_t seed = 1;
  RunSpec spec;
};

struct Plan {
  // The experiment with the options applied. Settings that are left out are removed, together with
  // the figures and claims that name them.
  Experiment experiment;
  std::vector<PlannedRun>
      runs;  // by case, then by seed; empty if there is only an efficiency table
};

// Returns the plan of TEXT. FILE is the path of the file, for messages and for the paths of traces.
// Errors: InvalidArgument with one line per problem.
absl::StatusOr<Plan> PlanExperiment(std::string_view text, const std::string& file,
                                    const PlanOptions& options);

// Reads the file PATH and returns its plan. Errors: those of PlanExperiment, and the error of the
// operating system if the file cannot be read.
absl::StatusOr<Plan> ReadExperiment(const std::string& path, const PlanOptions& options);

// Returns the name of a case, such as "mode=ssp, straggler=none"; "" if EXPERIMENT has no axes.
std::string CaseName(const Experiment& experiment, const std::vector<std::string>& settings);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_PLAN_EXPERIMENT_FILE_H_
