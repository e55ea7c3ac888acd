#include "config/job.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "config/applicability.h"
#include "config/fields.h"
#include "config/parts/compression.h"
#include "config/parts/consistency.h"
#include "config/parts/optimization.h"
#include "config/parts/recovery.h"
#include "config/parts/task.h"
#include "config/stability.h"

namespace thinwire {
namespace {

using Named = Compression::Codec;

// Returns the spec of GROUP. PLACE is its place in the job: "parameter_group[0]".
GroupSpec GroupSpecOf(const ParameterGroup& group, const JobConfig& config,
                      const std::string& place, Problems& problems) {
  GroupSpec spec = {.match = group.match(),
                    .learning_rate_factor = group.learning_rate_factor(),
                    .optimizer = OptimizerSpecOf(config.optimization())};
  if (group.has_optimizer()) spec.optimizer.kind = static_cast<OptimizerKind>(group.optimizer());
  if (group.has_weight_decay()) spec.optimizer.weight_decay = group.weight_decay();
  const Compression& c = config.compression();
  if (group.has_push()) spec.push = PushCodecOf(CodecOf(group.push()), c);
  if (!group.has_density()) return spec;
  if (!group.has_push() && HasDensity(CodecOf(c.push()))) {
    spec.push = PushCodecOf(CodecOf(c.push()), c);
  }
  if (spec.push.has_value() && HasDensity(spec.push->id)) {
    spec.push->density = group.density();
  } else {
    problems.Add(
        place + ".density",
        absl::StrCat(
            "only valid with push: topk, randomk or dct_topk (got push: ",
            group.has_push() ? Named::Value_Name(group.push()) : Named::Value_Name(c.push()), ")"));
  }
  return spec;
}

JobSpec JobSpecOf(const JobConfig& config, Problems& problems) {
  JobSpec spec;
  spec.name = config.name();
  spec.server_count = config.servers();
  spec.rule = RuleOf(config.consistency());
  spec.members = config.consistency().members();
  spec.auto_rule = config.consistency().auto_backup() || config.consistency().auto_slack();
  spec.staleness = StalenessSpecOf(config.consistency());
  spec.lease = absl::Seconds(config.consistency().lease_seconds());
  spec.start_timeout = absl::Seconds(config.consistency().start_timeout_seconds());
  spec.drain = absl::Seconds(config.consistency().drain_seconds());
  spec.optimizer = OptimizerSpecOf(config.optimization());
  spec.clip_norm = config.optimization().clip_norm();
  spec.schedule = ScheduleSpecOf(config.optimization());
  spec.sparse_updates = SparseUpdateSpecOf(config.optimization(), config.compression());
  spec.push = PushSpecOf(config.compression());
  for (int i = 0; i < config.parameter_group_size(); ++i) {
    spec.groups.push_back(GroupSpecOf(config.parameter_group(i), config,
                                      absl::StrCat("parameter_group[", i, "]"), problems));
  }
  spec.publish = PublishOptionsOf(config.compression());
  if (!spec.publish.has_value()) spec.pull_codec = CodecOf(config.compression().pull());
  spec.shard_size = config.compression().shard_size();
  spec.task = TaskSpecOf(config.task());
  spec.silence = absl::Seconds(config.silence_seconds());
  for (int i = 0; i < config.straggler_size(); ++i) {
    absl::StatusOr<Straggler> straggler = ParseStraggler(config.straggler(i));
    if (straggler.ok()) {
      spec.stragglers.push_back(*straggler);
    } else {
      problems.Add(absl::StrCat("straggler[", i, "]"), std::string(straggler.status().message()));
    }
  }
  spec.recovery = RecoverySpecOf(config.recovery());
  spec.report = config.report();
  return spec;
}

// Returns the name of the problem's setting, or the path of a field of a parameter group.
std::string NameOf(const Problem& problem) {
  if (problem.field.find("].") != std::string::npos) return problem.field;
  return problem.field.substr(0, problem.field.find('['));
}

std::vector<std::string> LinesOf(const Problems& problems, const FieldPlaces& places) {
  std::vector<std::string> lines;
  for (const Problem& problem : problems.list()) lines.push_back(LineOf(problem, places));
  return lines;
}

}  // namespace

absl::StatusOr<JobSpec> CheckJob(const JobConfig& config, const FieldPlaces& places, JobUse use) {
  // A job that comes from another process may name codecs where they have no meaning.
  const Problems misplaced = WrongValues(config);
  if (!misplaced.empty()) return ErrorOf(misplaced.list(), places);
  Problems problems = UselessFields(config);
  if (const auto recipe = config.compression().recipe(); recipe != Compression::Recipe::none) {
    problems.Add("recipe", absl::StrCat("not replaced by its settings (expected none, got ",
                                        Compression::Recipe::Value_Name(recipe), ")"));
  }
  const JobSpec spec = JobSpecOf(config, problems);
  if (use == JobUse::kProcesses) problems.Append(spec.ProcessProblems());
  if (use == JobUse::kVirtualTime && Traits(spec.optimizer.kind).holds_average) {
    problems.Add("optimizer", "average needs workers in Python (expected another, got average)");
  }
  if (use == JobUse::kVirtualTime && spec.members > 1) {
    problems.Add("members",
                 absl::StrCat("needs workers in Python (expected 1, got ", spec.members, ")"));
  }
  std::vector<Problem> all = problems.list();
  // A field without effect has only this one problem: an invalid value of the field is not reported
  // in addition.
  const Problems invalid = spec.Validate();
  for (const Problem& problem : invalid.list()) {
    const bool reported = std::ranges::any_of(
        problems.list(), [&](const Problem& other) { return NameOf(other) == NameOf(problem); });
    if (!reported) all.push_back(problem);
  }
  if (all.empty()) return spec;
  std::map<std::string, size_t> order;
  for (const Field& field : Settings(*JobConfig::descriptor())) {
    order.emplace(field.name(), order.size());
  }
  // Problems of parameter groups come last.
  std::ranges::stable_sort(all, {}, [&](const Problem& problem) {
    const auto place = order.find(NameOf(problem));
    return place == order.end() ? order.size() : place->second;
  });
  return ErrorOf(all, places);
}

absl::StatusOr<Straggler> ParseStraggler(std::string_view text) {
  const size_t colon = text.find(':');
  Straggler straggler;
  if (colon == std::string_view::npos ||
      !absl::SimpleAtoi(std::string(text.substr(0, colon)), &straggler.worker.value) ||
      !absl::ParseDuration(std::string(text.substr(colon + 1)), &straggler.delay) ||
      straggler.delay < absl::ZeroDuration() || straggler.delay > absl::Hours(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("wrong value (expected WORKER:DELAY, such as 3:50ms, with a delay of at most "
                     "1h, got ",
                     std::string(text), ")"));
  }
  return straggler;
}

std::vector<std::string> WarningsOf(const JobConfig& config, const JobSpec& job,
                                    const FieldPlaces& places) {
  Problems warnings = job.Warnings();
  warnings.Append(StabilityWarnings(config));
  return LinesOf(warnings, places);
}

std::vector<std::string> MissingFiles(const TaskSpec& task, const FieldPlaces& places) {
  Problems problems;
  std::error_code ignored;
  if (!task.model_file.empty() && !std::filesystem::is_regular_file(task.model_file, ignored)) {
    problems.Add("model_file", absl::StrCat("no such file (expected a TorchScript file, got \"",
                                            task.model_file, "\")"));
  }
  if (!std::filesystem::is_directory(task.data_dir, ignored)) {
    const bool packaged = task.dataset == DatasetKind::kFashionMnist;
    problems.Add("data_dir",
                 absl::StrCat("no such folder (expected the folder of the dataset",
                              packaged ? ", as in Debian's package dataset-fashion-mnist" : "",
                              ", got \"", task.data_dir, "\")"));
  }
  return LinesOf(problems, places);
}

}  // namespace thinwire
