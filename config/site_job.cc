#include "config/site_job.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/text/problems.h"

namespace thinwire {
namespace {

using Optimizers = Optimization::Optimizer;
using Schedules = Optimization::Schedule;
using Codecs = Compression::Codec;

constexpr uint32_t kMostWorkers = 65536;
constexpr absl::string_view kSuffix = "-site-";

// Returns whether NAME is that of a site's job.
bool IsOfSite(absl::string_view name) {
  const size_t begin = name.rfind(kSuffix);
  if (begin == absl::string_view::npos) return false;
  uint32_t number = 0;
  return absl::SimpleAtoi(name.substr(begin + kSuffix.size()), &number);
}

// Returns the settings that need every worker in the upper job.
Problems NotWithSites(const JobConfig& config) {
  Problems problems;
  const auto refuse = [&](bool refused, std::string_view field, absl::string_view expected,
                          const auto& got) {
    if (!refused) return;
    problems.Add(field, absl::StrCat("not possible in a job with sites (expected ", expected,
                                     ", got ", got, ")"));
  };
  // The outer site's share of the examples would be lost.
  if (IsOfSite(config.name())) {
    problems.Add("name", absl::StrCat("the job of a site has no sites of its own (expected a name "
                                      "without -site-NUMBER at its end, got ",
                                      config.name(), ")"));
  }
  const Optimization& optimization = config.optimization();
  refuse(config.task().local_steps() > 1, "local_steps", "1", config.task().local_steps());
  refuse(optimization.schedule() == Schedules::noise_scale, "schedule", "another", "noise_scale");
  refuse(optimization.optimizer() == Optimizers::average, "optimizer", "another", "average");
  refuse(config.consistency().members() > 1, "members", "1", config.consistency().members());
  refuse(config.compression().push() == Codecs::adaptive, "push", "another", "adaptive");
  return problems;
}

}  // namespace

void AddSite(CommandFlags& command, SiteFlags& flags, const std::string& note) {
  const Flag site =
      command
          .Add("--site", flags.site,
               "The number of the site to which this process belongs: that of its aggregator among "
               "the workers of the job. " +
                   note)
          .Type("NUMBER")
          .Environment("THINWIRE_SITE");
  command
      .Add(
          "--site_workers", flags.workers,
          "The number of workers of this site, the same in all its processes. Required with --site")
      .Type("COUNT")
      .Between(1u, kMostWorkers)
      .Needs(site)
      .Environment("THINWIRE_SITE_WORKERS");
  command
      .Add("--site_backup", flags.backup,
           "Each round of the site waits for all its workers except this number (mode backup), the "
           "same in all its processes. Below --site_workers. Default: 0 (mode sync)")
      .Type("COUNT")
      .Needs(site)
      .Environment("THINWIRE_SITE_BACKUP");
}

absl::StatusOr<JobConfig> SiteJob(const JobConfig& config, const SiteFlags& flags,
                                  const FieldPlaces& places) {
  const Consistency& upper = config.consistency();
  if (*flags.site >= upper.workers()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--site: out of range (expected below ", upper.workers(),
                     ", the number of workers of the job, got ", *flags.site, ")"));
  }
  if (flags.workers == 0) {
    return absl::InvalidArgumentError(
        "--site_workers: missing (expected the number of workers of the site)");
  }
  if (flags.backup >= flags.workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("--site_backup: out of range (expected below ", flags.workers,
                     ", the number of workers of the site, got ", flags.backup, ")"));
  }
  if (flags.backup > 0 && upper.ordered_fold()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--site_backup: not possible with ordered_fold, which needs mode sync (expected "
        "0, got ",
        flags.backup, ")"));
  }
  if (const Problems problems = NotWithSites(config); !problems.empty()) {
    return ErrorOf(problems.list(), places);
  }
  JobConfig job;
  job.set_name(absl::StrCat(config.name(), kSuffix, *flags.site));
  Consistency& consistency = *job.mutable_consistency();
  consistency.set_workers(flags.workers);
  if (flags.backup > 0) {
    consistency.set_mode(Consistency::Mode::backup);
    consistency.set_backup(flags.backup);
  }
  if (upper.ordered_fold()) consistency.set_ordered_fold(true);  // not a setting of mode backup
  consistency.set_lease_seconds(upper.lease_seconds());
  consistency.set_start_timeout_seconds(upper.start_timeout_seconds());
  consistency.set_drain_seconds(upper.drain_seconds());
  job.mutable_compression()->set_shard_size(config.compression().shard_size());
  if (config.has_task()) *job.mutable_task() = config.task();
  job.set_silence_seconds(config.silence_seconds());
  // A log would have to contain the parameters of every round, which the upper job has.
  if (config.recovery().durability() != Recovery::Durability::none) {
    *job.mutable_recovery() = config.recovery();
    job.mutable_recovery()->set_durability(Recovery::Durability::checkpoint);
    job.mutable_recovery()->clear_keep_log();
  }
  return job;
}

}  // namespace thinwire
