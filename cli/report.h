// Report: a finished run as JSON for programs and as a table for people. docs/configuration.md
// lists the fields.
#ifndef THINWIRE_CLI_REPORT_H_
#define THINWIRE_CLI_REPORT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/run_record.h"
#include "cli/server_totals.h"
#include "proto/config.pb.h"

namespace thinwire {

struct RunResult {
  TrainConfig config;
  RunRecord record;
  std::optional<ServerTotals> totals;  // if every server answered at the end
  std::optional<uint32_t> parameters_crc32c;
  std::vector<std::string> problems;  // what went wrong, for a person
  bool interrupted = false;
};

nlohmann::ordered_json ReportJson(const RunResult& result);
std::string ReportTable(const RunResult& result);

// Errors: of the system, with PATH.
absl::Status WriteReport(const std::string& path, const nlohmann::ordered_json& report);

}  // namespace thinwire

#endif  // THINWIRE_CLI_REPORT_H_
