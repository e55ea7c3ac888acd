// The report of a finished training run: JSON for programs and a table for people.
// docs/configuration.md describes the JSON fields.
#ifndef THINWIRE_CLI_TRAIN_REPORT_H_
#define THINWIRE_CLI_TRAIN_REPORT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/train/run_record.h"
#include "proto/job.pb.h"

namespace thinwire {

struct TrainResult {
  JobConfig config;
  double price_per_gb = 0;  // see Traffic (admin/traffic.h)
  RunRecord record;
  std::optional<ServerTotals> totals;  // nullopt unless every server replied at the end of the run
  std::optional<uint32_t> parameters_crc32c;
  std::optional<uint64_t> resumed_step;  // the step from which a resumed run went on
  std::vector<std::string> problems;     // error messages
  bool interrupted = false;              // whether a signal ended the run
};

nlohmann::ordered_json ReportJson(const TrainResult& result);
std::string ReportTable(const TrainResult& result);

// Returns an error if the report cannot be written to `path`. Does not change the file.
absl::Status CheckReportPath(const std::string& path);
// Writes `report` to the file `path`, which it replaces as a whole. A path that is not a regular
// file, such as /dev/stdout, is written to directly. Errors: system errors, with the path.
absl::Status WriteReport(const std::string& path, const nlohmann::ordered_json& report);

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_REPORT_H_
