// RunParameterServer: workers and servers in virtual time (run.h).
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/spec/push_spec.h"
#include "common/spec/recovery_spec.h"
#include "common/spec/rule.h"
#include "common/status_macros.h"
#include "common/text/problems.h"
#include "experiments/cluster/adaptive_run.h"
#include "experiments/cluster/fastest_codecs.h"
#include "experiments/cluster/lab_cluster.h"
#include "experiments/cluster/run.h"
#include "experiments/cluster/server_run.h"

namespace thinwire::lab {

// The daemons support some settings that virtual time does not.
absl::Status CheckSupported(const RunSpec& spec) {
  const JobSpec& job = spec.job;
  Problems problems = job.Validate();
  const auto require = [&](bool good, const std::string& setting, const std::string& expected,
                           const auto& got) { problems.Require(good, setting, expected, got); };
  require(spec.machines.exchange() == Machines::Exchange::servers, "machines.exchange", "servers",
          Machines::Exchange::Value_Name(spec.machines.exchange()));
  require(job.push.choose != ChoiceRule::kAuto, "job.compression.push",
          "a codec, fastest or adaptive in virtual time", "auto");
  require(job.recovery.durability == Durability::kNone, "job.recovery.durability",
          "none in virtual time", "another value");
  require(!job.task.device.starts_with("cuda"), "job.task.device", "auto or cpu in virtual time",
          job.task.device);
  require(!job.schedule.grows_batch() || !spec.machines.has_synthetic(), "machines.synthetic",
          "a schedule other than noise_scale", "noise_scale");
  require(spec.tests > 0, "tests", "at least 1", spec.tests);
  require(!spec.machines.servers_beside_workers() || job.server_count <= job.rule.workers,
          "machines.servers_beside_workers", "at most as many servers as workers",
          absl::StrCat(job.server_count, " servers, ", job.rule.workers, " workers"));
  if (spec.machines.has_imposed_staleness()) {
    require(job.rule.mode() == "async", "machines.imposed_staleness", "mode async",
            std::string(job.rule.mode()));
    require(!job.push.choose.has_value(), "machines.imposed_staleness", "one codec", "fastest");
    require(job.rule.fold_every == 1, "machines.imposed_staleness", "fold_every: 1",
            job.rule.fold_every);
    require(!job.publish.has_value() || job.publish->every <= 1, "machines.imposed_staleness",
            "publish_every: 1 with deltas", job.publish.has_value() ? job.publish->every : 0);
  }
  return problems.ToStatus();
}

absl::StatusOr<RunResult> RunParameterServer(const RunSpec& spec, const MakeLearningTask& task,
                                             const RunControl& control) {
  RETURN_IF_ERROR(CheckSupported(spec));
  if (!spec.job.push.adaptive.has_value() && !spec.machines.has_imposed_staleness()) {
    return RunServers(spec, task, control);
  }
  ASSIGN_OR_RETURN(const auto cluster, LabCluster::Make(spec, task, control.threads));
  if (spec.job.push.adaptive.has_value()) return RunAdaptive(*cluster, control);
  const auto record = cluster->MakeRecord(cluster->examples(), spec.tests);
  Stretch whole = {.end = cluster->end()};
  if (spec.job.push.choose.has_value()) whole.codecs = FastestCodecs(spec, cluster->partition());
  RETURN_IF_ERROR(cluster->Begin(whole, *record));
  RETURN_IF_ERROR(cluster->Run(
      [&] { return control.progress == nullptr || control.progress(record->done()); }));
  ASSIGN_OR_RETURN(RunResult result, record->Finish());
  cluster->AddValueAges(result);
  return result;
}

}  // namespace thinwire::lab
