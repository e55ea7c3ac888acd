// The files of an experiment's folder (docs/experiments.md):
//
//   experiment.json              the experiment: its axes, figures and claims
//   runs.csv  curves.csv  staleness.csv  value_age.csv  decisions.csv  rule_changes.csv
//                                the results of all runs; `run` is the number of the run, from 0
//   runs/KEY.result              a stored result, a serialized RunResult. KEY is a hash of everything that
//                                the result depends on
//
// The files depend on the results alone. Numbers have as many digits as they need to be read back
// exactly.
#ifndef THINWIRE_EXPERIMENTS_PLAN_RESULTS_H_
#define THINWIRE_EXPERIMENTS_PLAN_RESULTS_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "experiments/plan/experiment_file.h"
#include "proto/experiment.pb.h"

namespace thinwire::lab {

// Prepares FOLDER for EXPERIMENT: creates it if it is absent and writes experiment.json. Errors:
// FailedPrecondition if the folder has another experiment or other files; errors of the file
// system.
absl::Status PrepareFolder(const std::string& folder, const Experiment& experiment);

// Returns the key of a run's result. IDENTITY describes what the result depends on besides SPEC:
// the program, the dataset.
std::string ResultKey(const RunSpec& spec, std::string_view identity);

// Returns the stored result of KEY, or nullopt if there is none or it cannot be read.
std::optional<RunResult> StoredResult(const std::string& folder, const std::string& key);
absl::Status StoreResult(const std::string& folder, const std::string& key,
                         const RunResult& result);

// Writes the files of comma-separated values. REQUIRES: RESULTS has one result per run of PLAN.
absl::Status WriteTables(const std::string& folder, const Plan& plan,
                         std::span<const RunResult> results);

// Writes TEXT to the file PATH, which it replaces as a whole.
absl::Status WriteText(const std::string& path, absl::string_view text);

// Returns the shortest text that is read back as VALUE; "nan" for every value that is not a number.
std::string ExactNumber(double value);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_PLAN_RESULTS_H_
