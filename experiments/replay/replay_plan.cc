#include "experiments/replay/replay_plan.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/files/crc32c.h"
#include "config/command_flags.h"
#include "config/field_flags.h"
#include "config/job.h"
#include "config/places.h"
#include "proto/experiment.pb.h"

namespace thinwire::lab {
namespace {

constexpr uint32_t kTests = 20;

// Returns CONFIG with CHANGES, which have the names and values of the job's flags.
absl::StatusOr<JobConfig> Changed(JobConfig config, const std::vector<std::string>& changes) {
  CLI::App app;
  app.allow_extras();
  const FieldFlags flags(app);
  std::vector<std::string> words;
  for (const std::string& change : changes) words.insert(words.begin(), "--" + change);
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrCat("--set: ", error.what()));
  }
  RETURN_IF_ERROR(CheckNoExtras(app));
  FieldPlaces places;
  RETURN_IF_ERROR(flags.Apply(config, places));
  RETURN_IF_ERROR(CheckJob(config, places).status());
  return config;
}

void AddFigure(Figure::Kind::Value kind, Figure::Quantity::Value y, const std::string& title,
               Experiment& experiment) {
  Figure& figure = *experiment.add_figure();
  figure.set_kind(kind);
  figure.set_title(title);
  if (kind != Figure::Kind::curves) return;
  figure.set_x(Figure::Quantity::examples);
  figure.set_y(y);
}

}  // namespace

absl::StatusOr<Plan> PlanReplay(const Recording& recording,
                                const std::vector<std::string>& changes) {
  ASSIGN_OR_RETURN(const JobConfig changed, Changed(recording.config, changes));
  Plan plan;
  Experiment& experiment = plan.experiment;
  experiment.set_name("replay");
  experiment.set_title("Replay of a recorded run");
  experiment.set_question(
      changes.empty() ? "Does the recorded run replay?"
                      : absl::StrCat("What would the recorded run have been with ",
                                     absl::StrJoin(changes, ", "),
                                     "? The order of all pushes and reads is the recorded one."));
  experiment.set_seeds(1);
  experiment.set_tests(kTests);
  Axis& axis = *experiment.add_axis();
  axis.set_name("job");
  const auto add = [&](const std::string& name, const JobConfig& config) -> absl::Status {
    axis.add_setting()->set_name(name);
    ASSIGN_OR_RETURN(JobSpec job, CheckJob(config));
    const uint64_t seed = job.task.seed;
    plan.runs.push_back({.settings = {name},
                         .seed = seed,
                         .spec = {.config = config,
                                  .job = std::move(job),
                                  .machines = {},
                                  .folder = "",
                                  .tests = kTests}});
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(add("recorded", recording.config));
  if (!changes.empty()) RETURN_IF_ERROR(add("changed", changed));
  AddFigure(Figure::Kind::curves, Figure::Quantity::accuracy, "Accuracy", experiment);
  AddFigure(Figure::Kind::curves, Figure::Quantity::loss, "Loss", experiment);
  AddFigure(Figure::Kind::staleness, Figure::Quantity::accuracy, "Staleness", experiment);
  AddFigure(Figure::Kind::table, Figure::Quantity::accuracy, "All runs", experiment);
  return plan;
}

std::string IdentityOf(const Recording& recording) {
  size_t event_count = 0;
  uint32_t crc = 0;
  std::vector<std::byte> scratch;
  for (const std::vector<Event>& events : recording.events) {
    event_count += events.size();
    for (const Event& event : events) {
      const auto* push = std::get_if<PushEvent>(&event);
      if (push != nullptr) crc = Crc32c(push->payload.bytes().Contiguous(scratch), crc);
    }
  }
  return absl::StrCat(event_count, " events ", crc);
}

}  // namespace thinwire::lab
