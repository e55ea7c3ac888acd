#include "experiments/plan/experiment_file.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/spec/task_spec.h"
#include "common/text/quoted.h"
#include "config/job.h"
#include "config/message_text.h"
#include "config/recipes.h"
#include "experiments/cluster/compute_times.h"
#include "experiments/plan/experiment_check.h"
#include "experiments/plan/machines_check.h"

namespace thinwire::lab {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr TextKind kKind = {.name = "an experiment file", .folder = "experiments/"};

// Removes the values of every repeated field of TO that FROM has.
void ClearReplacedLists(const Message& from, Message& to) {
  std::vector<const FieldDescriptor*> given;
  from.GetReflection()->ListFields(from, &given);
  for (const FieldDescriptor* field : given) {
    if (field->is_repeated()) {
      to.GetReflection()->ClearField(&to, field);
    } else if (field->message_type() != nullptr && to.GetReflection()->HasField(to, field)) {
      ClearReplacedLists(from.GetReflection()->GetMessage(from, field),
                         *to.GetReflection()->MutableMessage(&to, field));
    }
  }
}

// Replaces the fields of TO that FROM has.
void Replace(const Message& from, Message& to) {
  ClearReplacedLists(from, to);
  to.MergeFrom(from);
}

// A message together with the places of its fields.
template <typename Type>
struct Placed {
  Type message;
  PathPlaces places;

  void ReplaceWith(const Type& from, const PathPlaces& from_places) {
    Replace(from, message);
    for (const auto& [path, place] : from_places) places.insert_or_assign(path, place);
  }
};

// Returns ELEMENTS without those for which REMOVE returns true.
template <typename Elements, typename Predicate>
void RemoveIf(Elements& elements, Predicate remove) {
  elements.erase(std::remove_if(elements.begin(), elements.end(), remove), elements.end());
}

class Planner {
 public:
  Planner(Experiment experiment, PathPlaces places, const std::string& file,
          const PlanOptions& options)
      : experiment_(std::move(experiment)),
        places_(std::move(places)),
        folder_(std::filesystem::path(file).parent_path().string()),
        options_(options) {}

  absl::StatusOr<Plan> Make() {
    for (const std::string& line : ExperimentProblems(experiment_, places_)) AddLine(line);
    if (problems_.empty()) ApplyOptions();
    if (problems_.empty()) AddCases();
    if (!problems_.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems_, "\n"));
    return Plan{.experiment = std::move(experiment_), .runs = std::move(runs_)};
  }

 private:
  // Adds the problem "PLACE: TEXT", where PLACE is that of the field PATH.
  void AddProblem(const std::string& path, const std::string& text) {
    const auto place = places_.find(path);
    AddLine(place == places_.end() ? text : absl::StrCat(place->second, ": ", text));
  }
  void AddLine(const std::string& line) {
    if (seen_.insert(line).second) problems_.push_back(line);
  }

  void ApplyOptions() {
    for (const std::string& only : options_.only) {
      const absl::Status status = CheckSettingText(experiment_, only);
      if (!status.ok()) AddLine(absl::StrCat("--only: ", std::string(status.message())));
    }
    if (!problems_.empty()) return;
    if (options_.quick) {
      const Quick& quick = experiment_.quick();
      if (quick.has_seeds()) experiment_.set_seeds(quick.seeds());
      if (quick.has_tests()) experiment_.set_tests(quick.tests());
      if (quick.has_target_accuracy()) experiment_.set_target_accuracy(quick.target_accuracy());
      if (quick.has_target_loss()) experiment_.set_target_loss(quick.target_loss());
    }
    if (options_.seeds) {
      if (*options_.seeds < 1 || *options_.seeds > kMostSeeds) {
        AddLine(absl::StrCat("--seeds: out of range (expected 1 to ", kMostSeeds, ", got ",
                             *options_.seeds, ")"));
      }
      experiment_.set_seeds(*options_.seeds);
    }
    for (int i = 0; i < experiment_.axis_size(); ++i) {
      kept_.emplace_back();
      const Axis& axis = experiment_.axis(i);
      for (int j = 0; j < axis.setting_size(); ++j) {
        if (Keeps(axis, axis.setting(j).name())) {
          kept_.back().push_back(j);
        } else {
          removed_.insert(absl::StrCat(axis.name(), "=", axis.setting(j).name()));
        }
      }
      if (kept_.back().empty()) {
        AddProblem(absl::StrCat("axis[", i, "].name"),
                   absl::StrCat("axis ", Quoted(axis.name()),
                                ": no setting is left (expected at least 1, got 0)"));
      }
    }
    const auto is_removed = [&](const auto& texts) {
      return std::ranges::any_of(texts, [&](const auto& text) { return removed_.contains(text); });
    };
    RemoveIf(*experiment_.mutable_figure(),
             [&](const Figure& figure) { return is_removed(figure.only()); });
    RemoveIf(*experiment_.mutable_claim(), [&](const Claim& claim) {
      return is_removed(claim.better()) || is_removed(claim.worse());
    });
  }

  // Returns whether the options keep the setting NAME of AXIS.
  bool Keeps(const Axis& axis, const std::string& name) const {
    if (options_.quick && std::ranges::count(experiment_.quick().without(), name) > 0) return false;
    bool named = false;
    for (const std::string& only : options_.only) {
      if (only == absl::StrCat(axis.name(), "=", name)) return true;
      named = named || only.starts_with(axis.name() + "=");
    }
    return !named;
  }

  void AddCases() {
    const bool has_runs = experiment_.has_job() || experiment_.axis_size() > 0;
    if (!has_runs && !experiment_.has_efficiency()) {
      AddLine("job: missing (expected a job, an axis or an efficiency table, got none)");
    }
    uint64_t count = experiment_.seeds();
    for (const std::vector<int>& settings : kept_) count *= settings.size();
    if (count > kMostRuns) {
      AddLine(
          absl::StrCat("axis: too many runs (expected at most ", kMostRuns, ", got ", count, ")"));
    }
    if (!has_runs || !problems_.empty()) return;
    Placed<JobConfig> job = {experiment_.job(), PlacesBelow(places_, "job.")};
    Placed<Machines> machines = {experiment_.machines(), PlacesBelow(places_, "machines.")};
    if (options_.quick) {
      job.ReplaceWith(experiment_.quick().job(), PlacesBelow(places_, "quick.job."));
      machines.ReplaceWith(experiment_.quick().machines(), PlacesBelow(places_, "quick.machines."));
    }
    AddCasesOf(0, job, machines, {});
    for (int i = 0; i < experiment_.axis_size(); ++i) {
      auto& settings = *experiment_.mutable_axis(i)->mutable_setting();
      RemoveIf(settings, [&](const Setting& setting) {
        return removed_.contains(absl::StrCat(experiment_.axis(i).name(), "=", setting.name()));
      });
    }
  }

  // Adds the runs of all cases that have SETTINGS in the axes before AXIS.
  void AddCasesOf(int axis, const Placed<JobConfig>& job, const Placed<Machines>& machines,
                  const std::vector<std::string>& settings) {
    if (axis == experiment_.axis_size()) {
      AddCase(job, machines, settings);
      return;
    }
    for (const int i : kept_[static_cast<size_t>(axis)]) {
      const Setting& setting = experiment_.axis(axis).setting(i);
      const std::string path = absl::StrCat("axis[", axis, "].setting[", i, "].");
      Placed<JobConfig> case_job = job;
      case_job.ReplaceWith(setting.job(), PlacesBelow(places_, path + "job."));
      Placed<Machines> case_machines = machines;
      case_machines.ReplaceWith(setting.machines(), PlacesBelow(places_, path + "machines."));
      std::vector<std::string> names = settings;
      names.push_back(setting.name());
      AddCasesOf(axis + 1, case_job, case_machines, names);
    }
  }

  void AddCase(const Placed<JobConfig>& job, const Placed<Machines>& machines,
               const std::vector<std::string>& settings) {
    JobConfig config = job.message;
    if (!config.has_name()) config.set_name(experiment_.name());
    FieldPlaces places = PlacesByName(job.places);
    ExpandRecipe(config, places);
    const absl::StatusOr<JobSpec> spec = CheckJob(config, places, JobUse::kVirtualTime);
    if (!spec.ok()) {
      AddCaseProblems(spec.status(), settings);
      return;
    }
    if ((spec->task.loss == LossKind::kScript) != HasLossOnly(experiment_)) {
      AddCaseProblems(
          absl::InvalidArgumentError(absl::StrCat(
              "job.task.loss: all cases have the one of the experiment's job (expected ",
              Task::Loss::Value_Name(experiment_.job().task().loss()), ", got ",
              Task::Loss::Value_Name(config.task().loss()), ")")),
          settings);
    }
    if (config.has_report()) {
      AddCaseProblems(
          absl::InvalidArgumentError(absl::StrCat(
              "job.report: only valid outside an experiment (got ", Quoted(config.report()), ")")),
          settings);
    }
    const Problems of_machines = CheckMachines(machines.message, *spec);
    for (const Problem& problem : of_machines.list()) {
      const auto place = machines.places.find(problem.field);
      AddCaseProblems(absl::InvalidArgumentError(
                          absl::StrCat(place == machines.places.end() ? "" : place->second + ": ",
                                       "machines.", problem.field, ": ", problem.text)),
                      settings);
    }
    const auto times = ComputeTimes::Make(machines.message.compute(), folder_, 1);
    if (!times.ok()) AddCaseProblems(times.status(), settings);
    for (uint32_t i = 0; i < experiment_.seeds() && problems_.empty(); ++i) {
      PlannedRun& run = runs_.emplace_back(PlannedRun{.settings = settings,
                                                      .seed = spec->task.seed + i,
                                                      .spec = {.config = config,
                                                               .job = *spec,
                                                               .machines = machines.message,
                                                               .folder = folder_,
                                                               .tests = experiment_.tests()}});
      run.spec.config.mutable_task()->set_seed(run.seed);
      run.spec.job.task.seed = run.seed;
    }
  }

  // Adds each line of STATUS that no earlier case has, with the name of the case.
  void AddCaseProblems(const absl::Status& status, const std::vector<std::string>& settings) {
    const std::string name = CaseName(experiment_, settings);
    std::string_view rest(status.message().data(), status.message().size());
    while (!rest.empty()) {
      const std::string line(rest.substr(0, rest.find('\n')));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      if (!seen_.insert(line).second) continue;
      problems_.push_back(name.empty() ? line : absl::StrCat(line, " [case ", name, "]"));
    }
  }

  Experiment experiment_;
  const PathPlaces places_;
  const std::string folder_;
  const PlanOptions& options_;
  std::vector<std::string> problems_;
  std::set<std::string> seen_;          // the lines of `problems_`, without their cases
  std::vector<std::vector<int>> kept_;  // the numbers of the kept settings, by axis
  std::set<std::string> removed_;       // "AXIS=SETTING"
  std::vector<PlannedRun> runs_;
};

}  // namespace

absl::StatusOr<Plan> PlanExperiment(std::string_view text, const std::string& file,
                                    const PlanOptions& options) {
  Experiment experiment;
  ASSIGN_OR_RETURN(PathPlaces places, ParseMessageText(text, file, kKind, experiment));
  return Planner(std::move(experiment), std::move(places), file, options).Make();
}

absl::StatusOr<Plan> ReadExperiment(const std::string& path, const PlanOptions& options) {
  ASSIGN_OR_RETURN(const std::string text, ReadMessageText(path, kKind));
  return PlanExperiment(text, path, options);
}

std::string CaseName(const Experiment& experiment, const std::vector<std::string>& settings) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < settings.size(); ++i) {
    parts.push_back(absl::StrCat(experiment.axis(static_cast<int>(i)).name(), "=", settings[i]));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace thinwire::lab
