// The job of a site: the workers of one local network and their aggregator, which is one worker of the
// upper job (docs/sites.md). It follows from the job file of the upper job, so that a site needs no
// job file of its own.
#ifndef THINWIRE_CONFIG_SITE_JOB_H_
#define THINWIRE_CONFIG_SITE_JOB_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "config/command_flags.h"
#include "config/places.h"
#include "proto/job.pb.h"

namespace thinwire {

// The values of the flags --site, --site_workers and --site_backup of an aggregator and of a worker of
// a site.
struct SiteFlags {
  std::optional<uint32_t> site;  // nullopt: the process belongs to no site
  uint32_t workers = 0;
  uint32_t backup = 0;  // above 0: the site begins in mode backup
};

// Adds the flags, which are also environment variables. FLAGS must outlive the command. NOTE follows
// the first sentence of the help of --site.
void AddSite(CommandFlags& command, SiteFlags& flags, const std::string& note);

// Returns the job of a site of the job CONFIG: one server in mode sync or backup, and fp32 in both
// directions. Its name ends in "-site-N". Errors: InvalidArgument with one line per setting of CONFIG
// that sites do not support, and for flags that do not fit CONFIG. REQUIRES: CheckJob accepts CONFIG;
// flags.site is set.
absl::StatusOr<JobConfig> SiteJob(const JobConfig& config, const SiteFlags& flags,
                                  const FieldPlaces& places = {});

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_SITE_JOB_H_
