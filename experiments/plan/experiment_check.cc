#include "experiments/plan/experiment_check.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/did_you_mean.h"
#include "common/text/quoted.h"

namespace thinwire::lab {
namespace {

constexpr uint32_t kMostTests = 10000;
constexpr size_t kLongestName = 63;

// The name of an axis or of a setting stands in files of comma-separated values and in
// "AXIS=SETTING".
bool IsSettingName(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, [](char c) {
    return c >= ' ' && c <= '~' && c != '=' && c != ',' && c != '"';
  });
}

const Axis* FindAxis(const Experiment& experiment, const std::string& name) {
  for (const Axis& axis : experiment.axis()) {
    if (axis.name() == name) return &axis;
  }
  return nullptr;
}

absl::Status CheckAxisName(const Experiment& experiment, const std::string& name) {
  if (FindAxis(experiment, name) != nullptr) return absl::OkStatus();
  std::vector<std::string_view> names;
  for (const Axis& axis : experiment.axis()) names.push_back(axis.name());
  if (names.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis: unknown (expected an axis of the experiment, which has none, got ",
                     Quoted(name), ")"));
  }
  return UnknownWord("axis", name, names);
}

class ExperimentCheck {
 public:
  ExperimentCheck(const Experiment& experiment, const PathPlaces& places)
      : experiment_(experiment), places_(places) {}

  std::vector<std::string> Run() {
    CheckAxes();
    CheckNumbers();
    // A wrong name of an axis would be reported again wherever the axis is named.
    if (problems_.empty()) CheckReferences();
    return problems_;
  }

 private:
  // Adds the problem "PLACE: TEXT", where PLACE is that of the field PATH.
  void AddProblem(const std::string& path, const std::string& text) {
    const auto place = places_.find(path);
    problems_.push_back(place == places_.end() ? text : absl::StrCat(place->second, ": ", text));
  }

  void CheckAxes() {
    std::set<std::string> axes(std::begin(kResultColumns), std::end(kResultColumns));
    axes.insert(kRunColumn);
    for (int i = 0; i < experiment_.axis_size(); ++i) {
      const Axis& axis = experiment_.axis(i);
      const std::string path = absl::StrCat("axis[", i, "]");
      CheckName(axis.name(), path, "axis", axes);
      std::set<std::string> settings;
      for (int j = 0; j < axis.setting_size(); ++j) {
        CheckName(axis.setting(j).name(), absl::StrCat(path, ".setting[", j, "]"), "setting",
                  settings);
      }
      if (axis.setting_size() == 0) {
        AddProblem(path + ".name", absl::StrCat("axis ", Quoted(axis.name()),
                                                ": no setting (expected at least 1, got 0)"));
      }
    }
  }

  void CheckName(const std::string& name, const std::string& path, const char* kind,
                 std::set<std::string>& names) {
    if (!IsSettingName(name)) {
      AddProblem(path + ".name",
                 absl::StrCat(kind, ": not a name (expected 1 to ", kLongestName,
                              " printable characters without =, comma and double quote, got ",
                              Quoted(name), ")"));
    } else if (!names.insert(name).second) {
      AddProblem(
          path + ".name",
          absl::StrCat(kind,
                       ": not a new name (expected each name once and no column of runs.csv, got ",
                       Quoted(name), ")"));
    }
  }

  void CheckNumbers() {
    const auto require = [&](bool holds, const std::string& field, const std::string& expected,
                             auto got) {
      if (holds) return;
      AddProblem(field,
                 absl::StrCat(field, ": out of range (expected ", expected, ", got ", got, ")"));
    };
    const auto require_all = [&](const auto& message, const std::string& path) {
      require(!message.has_seeds() || (message.seeds() >= 1 && message.seeds() <= kMostSeeds),
              path + "seeds", absl::StrCat("1 to ", kMostSeeds), message.seeds());
      require(!message.has_tests() || (message.tests() >= 1 && message.tests() <= kMostTests),
              path + "tests", absl::StrCat("1 to ", kMostTests), message.tests());
      require(message.target_accuracy() >= 0 && message.target_accuracy() <= 1,
              path + "target_accuracy", "0 to 1", message.target_accuracy());
      require(message.target_loss() >= 0, path + "target_loss", "at least 0",
              message.target_loss());
    };
    require_all(experiment_, "");
    require_all(experiment_.quick(), "quick.");
    for (int i = 0; i < experiment_.claim_size(); ++i) {
      const Claim& claim = experiment_.claim(i);
      const std::string path = absl::StrCat("claim[", i, "].");
      require(!claim.has_expected_ratio() || claim.expected_ratio() > 0, path + "expected_ratio",
              "above 0", claim.expected_ratio());
      require(claim.deviations() >= 0, path + "deviations", "at least 0", claim.deviations());
      require(claim.within() > 0 && claim.within() < 1, path + "within", "above 0 and below 1",
              claim.within());
    }
  }

  template <typename Texts>
  void CheckSettings(const Texts& texts, const std::string& path) {
    for (int i = 0; i < static_cast<int>(texts.size()); ++i) {
      const absl::Status status = CheckSettingText(experiment_, texts[i]);
      if (status.ok()) continue;
      AddProblem(absl::StrCat(path, "[", i, "]"),
                 absl::StrCat(path, ": ", std::string(status.message())));
    }
  }

  // Checks that PATH names no accuracy (or target) in an experiment that has none.
  void CheckQuality(bool is_accuracy, const std::string& path) {
    if (is_accuracy && HasLossOnly(experiment_)) {
      AddProblem(path, absl::StrCat(path,
                                    ": only valid with job.task.loss: cross_entropy (got "
                                    "loss: script, whose tests have no accuracy)"));
    }
  }

  void CheckTargets(bool has_accuracy, bool has_loss, const std::string& path) {
    CheckQuality(has_accuracy, path + "target_accuracy");
    if (has_loss && !HasLossOnly(experiment_)) {
      AddProblem(path + "target_loss",
                 absl::StrCat(path, "target_loss: only valid with job.task.loss: script (got ",
                              "cross_entropy, expected target_accuracy)"));
    }
  }

  void CheckTarget(bool needed, const std::string& path) {
    const bool by_loss = HasLossOnly(experiment_);
    const double target = by_loss ? experiment_.target_loss() : experiment_.target_accuracy();
    if (needed && target == 0) {
      AddProblem(path, absl::StrCat(path, ": only valid with target_",
                                    by_loss ? "loss" : "accuracy", " (got none)"));
    }
  }

  // The part of the time spent computing is known for a whole run only.
  void CheckBusy(Figure::Quantity::Value quantity, const std::string& path) {
    if (quantity != Figure::Quantity::busy) return;
    AddProblem(path, path + ": busy is only valid as y with kind: scan");
  }

  void CheckReferences() {
    CheckTargets(experiment_.has_target_accuracy(), experiment_.has_target_loss(), "");
    CheckTargets(experiment_.quick().has_target_accuracy(), experiment_.quick().has_target_loss(),
                 "quick.");
    for (int i = 0; i < experiment_.figure_size(); ++i) {
      const Figure& figure = experiment_.figure(i);
      const std::string path = absl::StrCat("figure[", i, "].");
      const auto check_axis = [&](const std::string& name, const std::string& field) {
        const absl::Status status =
            name.empty() ? absl::OkStatus() : CheckAxisName(experiment_, name);
        if (status.ok()) return;
        AddProblem(path + field, absl::StrCat(path, field, ": ", std::string(status.message())));
      };
      check_axis(figure.panels(), "panels");
      check_axis(figure.x_axis(), "x_axis");
      CheckSettings(figure.only(), path + "only");
      if (figure.kind() == Figure::Kind::scan && figure.x_axis().empty()) {
        AddProblem(path + "kind",
                   path + "x_axis: missing (expected an axis with kind: scan, got none)");
      }
      CheckBusy(figure.x(), path + "x");
      if (figure.kind() != Figure::Kind::scan) CheckBusy(figure.y(), path + "y");
      CheckTarget(figure.kind() == Figure::Kind::time_to_accuracy, path + "kind");
      CheckQuality(figure.x() == Figure::Quantity::accuracy, path + "x");
      CheckQuality(figure.has_y() && figure.y() == Figure::Quantity::accuracy, path + "y");
    }
    for (int i = 0; i < experiment_.claim_size(); ++i) {
      const Claim& claim = experiment_.claim(i);
      const std::string path = absl::StrCat("claim[", i, "].");
      CheckSettings(claim.better(), path + "better");
      CheckSettings(claim.worse(), path + "worse");
      if (claim.better().empty() || claim.worse().empty()) {
        AddProblem(path + "text", absl::StrCat(path, claim.better().empty() ? "better" : "worse",
                                               ": missing (expected AXIS=SETTING, got none)"));
      }
      CheckTarget(claim.measure() == Claim::Measure::seconds_to_target, path + "measure");
      CheckQuality(claim.has_measure() && claim.measure() == Claim::Measure::accuracy,
                   path + "measure");
    }
    for (int i = 0; i < experiment_.quick().without_size(); ++i) CheckWithout(i);
  }

  void CheckWithout(int number) {
    const std::string& name = experiment_.quick().without(number);
    std::vector<std::string_view> names;
    for (const Axis& axis : experiment_.axis()) {
      for (const Setting& setting : axis.setting()) names.push_back(setting.name());
    }
    if (std::ranges::count(names, name) > 0) return;
    const absl::Status status = UnknownWord("quick.without", name, names);
    AddProblem(absl::StrCat("quick.without[", number, "]"), std::string(status.message()));
  }

  const Experiment& experiment_;
  const PathPlaces& places_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> ExperimentProblems(const Experiment& experiment,
                                            const PathPlaces& places) {
  return ExperimentCheck(experiment, places).Run();
}

bool HasLossOnly(const Experiment& experiment) {
  return experiment.job().task().loss() == Task::Loss::script;
}

absl::Status CheckSettingText(const Experiment& experiment, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("wrong value (expected AXIS=SETTING, got ", Quoted(text), ")"));
  }
  const std::string axis = text.substr(0, equals);
  RETURN_IF_ERROR(CheckAxisName(experiment, axis));
  std::vector<std::string_view> names;
  for (const Setting& setting : FindAxis(experiment, axis)->setting()) {
    names.push_back(setting.name());
  }
  const std::string name = text.substr(equals + 1);
  if (std::ranges::count(names, name) > 0) return absl::OkStatus();
  return UnknownWord("setting", name, names);
}

}  // namespace thinwire::lab
