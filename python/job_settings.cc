#include "python/job_settings.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/text/did_you_mean.h"
#include "config/applicability.h"
#include "config/fields.h"
#include "config/job.h"
#include "config/job_difference.h"
#include "config/job_text.h"
#include "config/places.h"
#include "config/recipes.h"
#include "config/site_job.h"
#include "proto/job.pb.h"

namespace thinwire {
namespace {

constexpr char kGroup[] = "parameter_group";

bool InTask(const Field& field) { return field.path.front()->name() == "task"; }

// Returns the field of SETTING. Errors: InvalidArgument "learning_rat: unknown setting (did you mean
// learning_rate?)".
absl::StatusOr<Field> FieldOf(const JobSetting& setting, const std::vector<Field>& fields) {
  const auto found = std::ranges::find(fields, setting.name, &Field::name);
  if (found != fields.end() && !InTask(*found)) return *found;
  if (found != fields.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        setting.place, ": describes the task of the C++ worker (expected that the Python program ",
        "chooses its model, data and number of steps, got a value)"));
  }
  std::vector<std::string_view> known = {kGroup};
  for (const Field& field : fields) known.push_back(field.name());
  const std::string nearest = DidYouMean(setting.name, known);
  return absl::InvalidArgumentError(
      absl::StrCat(setting.place, ": unknown setting",
                   nearest.empty() ? "" : absl::StrCat(" (did you mean ", nearest, "?)")));
}

// Replaces the groups of CONFIG by those of SETTING, whose values are their fields in text format.
absl::Status ReplaceGroups(const JobSetting& setting, JobConfig& config) {
  config.clear_parameter_group();
  for (size_t i = 0; i < setting.values.size(); ++i) {
    ASSIGN_OR_RETURN(const JobText group,
                     ParseJobText(absl::StrCat(kGroup, " { ", setting.values[i], " }"),
                                  absl::StrCat(setting.place, "[", i, "]")));
    config.MergeFrom(group.config);
  }
  return absl::OkStatus();
}

absl::Status Apply(const JobSetting& setting, const std::vector<Field>& fields, JobText& text) {
  if (setting.name == kGroup) return ReplaceGroups(setting, text.config);
  ASSIGN_OR_RETURN(const Field field, FieldOf(setting, fields));
  if (setting.values.size() != 1 && !field.descriptor().is_repeated()) {
    return absl::InvalidArgumentError(absl::StrCat(setting.place, ": wrong value (expected ",
                                                   ExpectedValue(field.descriptor()), ", got ",
                                                   setting.values.size(), " values)"));
  }
  std::vector<std::string> values = setting.values;
  if (field.descriptor().is_repeated() && values.size() == 1) {
    values = absl::StrSplit(values.front(), ',');
  }
  const std::vector<std::string> problems =
      ReplaceValue(text.config, field, values, setting.place, text.places);
  return problems.empty() ? absl::OkStatus()
                          : absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

// Refuses settings that only the training loop of the C++ worker carries out.
absl::Status CheckSupported(const JobSpec& spec) {
  if (spec.push.adaptive.has_value()) {
    return absl::InvalidArgumentError(
        "push: not available in Python (expected a codec, auto or fastest, got adaptive)");
  }
  if (spec.schedule.grows_batch()) {
    return absl::InvalidArgumentError(
        "schedule: not available in Python (expected constant, step, polynomial or cosine, got "
        "noise_scale)");
  }
  return absl::OkStatus();
}

// Checks that the settings of a site's worker, which are in CONFIG, are those of the job file PATH.
// The aggregator has no other ones.
absl::Status CheckOfFile(const std::string& path, const JobConfig& of_file,
                         const JobConfig& config) {
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "config: missing (expected the job file of the site's aggregator, got none)");
  }
  const std::optional<std::string> difference =
      JobDifference(of_file, config, Compared::kAllButTask);
  if (!difference.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": in a site, all settings are those of this file: ", *difference));
}

}  // namespace

std::vector<std::string> JobSettingNames() {
  std::vector<std::string> names;
  for (const Field& field : Settings(*JobConfig::descriptor())) {
    if (!InTask(field)) names.push_back(field.name());
  }
  return names;
}

absl::StatusOr<PythonJob> MakePythonJob(const std::string& path,
                                        const std::vector<JobSetting>& settings,
                                        const LocalStepsSpec& local, const SiteFlags& site) {
  JobText text;
  if (!path.empty()) {
    ASSIGN_OR_RETURN(text, ReadJobFile(path));
  }
  const JobConfig of_file = text.config;
  const std::vector<Field> fields = Settings(*JobConfig::descriptor());
  std::vector<std::string> problems;
  for (const JobSetting& setting : settings) {
    const absl::Status applied = Apply(setting, fields, text);
    if (!applied.ok()) problems.emplace_back(applied.message());
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  DropReplacedFields(text.config, text.places);
  ExpandRecipe(text.config, text.places);
  if (local.streaming()) {
    Task& task = *text.config.mutable_task();
    task.set_local_steps(local.count);
    task.set_fragments(local.fragments);
    task.set_overlap_steps(local.overlap);
    if (local.overlap > 0) task.set_mixing(local.mixing);
  }
  ASSIGN_OR_RETURN(JobSpec spec, CheckJob(text.config, text.places));
  RETURN_IF_ERROR(CheckSupported(spec));
  std::optional<JobSpec> upper;
  if (site.site.has_value()) {
    text.config.mutable_task()->set_local_steps(local.count);
    absl::StatusOr<JobConfig> config = SiteJob(text.config, site, text.places);
    if (!config.ok()) {
      // The message may name a flag of the programs.
      return absl::InvalidArgumentError(absl::StripPrefix(config.status().message(), "--"));
    }
    RETURN_IF_ERROR(CheckOfFile(path, of_file, text.config));
    upper = std::move(spec);
    text.config = *std::move(config);
    ASSIGN_OR_RETURN(spec, CheckJob(text.config));
  }
  text.config.clear_task();
  return PythonJob{
      .config = std::move(text.config), .spec = std::move(spec), .upper = std::move(upper)};
}

}  // namespace thinwire
