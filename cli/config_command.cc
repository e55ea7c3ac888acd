#include "cli/config_command.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/status_macros.h"
#include "config/effective.h"
#include "config/job.h"
#include "config/job_text.h"
#include "proto/job.pb.h"

namespace thinwire {
namespace {

absl::StatusOr<JobConfig> ReadChecked(const std::string& file) {
  ASSIGN_OR_RETURN(JobText text, ReadJobFile(file));
  RETURN_IF_ERROR(CheckJob(text.config, text.places).status());
  return text.config;
}

}  // namespace

ExitCode CheckConfigFiles(const std::vector<std::string>& files, std::ostream& out,
                          std::ostream& err) {
  ExitCode code = ExitCode::kOk;
  for (const std::string& file : files) {
    const absl::Status status = ReadChecked(file).status();
    if (status.ok()) {
      out << file << ": ok" << std::endl;
    } else {
      err << status.message() << std::endl;
      code = ExitCode::kConfig;
    }
  }
  return code;
}

ExitCode ShowConfigFile(const std::string& file, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<JobConfig> config = ReadChecked(file);
  if (!config.ok()) {
    err << config.status().message() << std::endl;
    return ExitCode::kConfig;
  }
  out << EffectiveText(*config) << std::flush;
  return ExitCode::kOk;
}

}  // namespace thinwire
