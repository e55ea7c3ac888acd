// `thinwire k8s`: writes the Kubernetes manifests of a job (docs/kubernetes.md).
#ifndef THINWIRE_CLI_K8S_K8S_COMMAND_H_
#define THINWIRE_CLI_K8S_K8S_COMMAND_H_

#include <optional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "cli/k8s/manifests.h"
#include "cli/terminal/console.h"
#include "common/base/exit_code.h"
#include "config/field_flags.h"

namespace CLI {
class App;
}

namespace thinwire {

struct K8sCommand {
  std::string config_file;  // path of the job file
  std::string out;          // the folder to write
  ManifestOptions options;
  std::optional<FieldFlags> fields = {};  // flags of the job's fields; set by AddK8s
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddK8s(CLI::App& app, K8sCommand& command);

// Writes the folder and prints one line about it.
ExitCode RunK8s(const K8sCommand& command, Console& console, std::ostream& out);

// Returns the job file of the pods: the job file FILE with the values of FLAGS. Without data_dir,
// the data is in the claim. Errors: those of config/job_text.h and config/job.h; InvalidArgument
// for a job that cannot run in the pods.
absl::StatusOr<JobConfig> JobOfPods(const std::string& file, const FieldFlags& flags);

}  // namespace thinwire

#endif  // THINWIRE_CLI_K8S_K8S_COMMAND_H_
