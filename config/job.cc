#include "config/job.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "config/applicability.h"
#include "config/fields.h"
#include "config/stability.h"

namespace thinwire {
namespace {

using Mode = Consistency::Mode;
using Pull = Compression::Pull;
using Push = Compression::Push;

// The enums in job.proto have the same numbers as the C++ enum classes. job_test.cc compares the
// names.
CodecId CodecOf(int value) { return static_cast<CodecId>(value); }

// The default of max_workers, unless a job has more workers.
constexpr uint32_t kMaxWorkers = 64;

Rule PlainModeOf(const Consistency& c) {
  switch (c.mode()) {
    case Mode::sync:
      return Rule::Sync(c.workers(), c.ordered_fold());
    case Mode::backup:
      return Rule::Backup(c.workers(), c.backup());
    case Mode::ssp:
      return Rule::Ssp(c.workers(), c.slack(), c.fold_every());
    case Mode::async:
      return Rule::Async(c.workers(), c.fold_every());
  }
  return Rule();
}

Rule ModeOf(const Consistency& c) {
  Rule rule = PlainModeOf(c);
  rule.in_flight = rule.fold == Fold::kPush ? c.in_flight() : c.delayed_gradient() ? 1 : 0;
  return rule;
}

StalenessSpec StalenessSpecOf(const Consistency& c) {
  return {.policy = static_cast<StalenessPolicy>(c.staleness_policy()),
          .bound = c.staleness_bound(),
          .lambda = c.dcasgd_lambda()};
}

OptimizerSpec OptimizerSpecOf(const Optimization& o) {
  return {.kind = static_cast<OptimizerKind>(o.optimizer()),
          .momentum = o.momentum(),
          .beta1 = o.beta1(),
          .beta2 = o.beta2(),
          .epsilon = o.epsilon(),
          .weight_decay = o.weight_decay(),
          .trust_coefficient = o.trust_coefficient(),
          .parameter_average = o.parameter_average()};
}

ScheduleSpec ScheduleSpecOf(const Optimization& o) {
  return {.kind = static_cast<ScheduleKind>(o.schedule()),
          .learning_rate = o.learning_rate(),
          .warmup = o.warmup(),
          .decay_at = {o.decay_at().begin(), o.decay_at().end()},
          .decay_factor = o.decay_factor(),
          .power = o.power(),
          .growth = {.largest_batch = o.largest_batch(), .ratio = o.growth_ratio()}};
}

DensityWarmup DensityWarmupOf(const Compression& c) {
  return {.part = c.density_warmup(), .first = c.warmup_density()};
}

SparseUpdateSpec SparseUpdateSpecOf(const Optimization& o, const Compression& c) {
  SparseUpdateSpec spec{.lazy_slots = o.lazy_slots()};
  if (o.gradient_selection() == Optimization::GradientSelection::none) return spec;
  spec.selection_density = o.selection_density();
  spec.selection_least = c.topk_least();
  spec.selection_warmup = DensityWarmupOf(c);
  spec.unselected_owner = static_cast<UnselectedOwner>(o.selection_rest());
  return spec;
}

// Returns the spec of the codec ID with the settings that pushes and pulls share.
CodecSpec CodecSpecOf(CodecId id, const Compression& c) {
  return {.id = id,
          .least_sent = c.topk_least(),
          .indices = static_cast<IndexCoder>(c.topk_indices()),
          .twobit_threshold = c.twobit_threshold(),
          .qsgd_levels = c.qsgd_levels(),
          .onebit_group = c.onebit_group(),
          .powersgd_rank = c.powersgd_rank()};
}

CodecSpec PushCodecOf(CodecId id, const Compression& c) {
  CodecSpec spec = CodecSpecOf(id, c);
  spec.density = c.density();
  spec.values = CodecOf(c.topk_values());
  // Without error feedback, values that randomk does not select are never sent later. Therefore the
  // sent values must be scaled so that the gradient is unbiased.
  spec.unbiased = !c.error_feedback();
  return spec;
}

// The default candidates of the settings `push: auto` and `push: fastest`. fp16 is not a candidate,
// because a gradient may be too large for fp16.
constexpr CodecId kDefaultCandidates[] = {CodecId::kBf16, CodecId::kFp8E4m3, CodecId::kFp8E5m2};

// The default candidates of the setting `push: adaptive`: those of AdaPrec.
constexpr int kDefaultArms[] = {Push::fp32, Push::fp8_e5m2, Push::table_1, Push::fastest};

AdaptiveSpec AdaptiveSpecOf(const Compression& c) {
  AdaptiveSpec spec{.speculate_steps = c.adaptive_speculate_steps(),
                    .continue_steps = c.adaptive_continue_steps(),
                    .prune = c.adaptive_prune(),
                    .per_layer = c.adaptive_per_layer()};
  std::vector<int> arms(c.adaptive_candidates().begin(), c.adaptive_candidates().end());
  if (arms.empty()) arms.assign(std::begin(kDefaultArms), std::end(kDefaultArms));
  for (const int arm : arms) {
    const bool fastest = arm == Push::fastest;
    spec.arms.push_back(
        {.fastest = fastest, .codec = PushCodecOf(CodecOf(fastest ? Push::fp32 : arm), c)});
  }
  return spec;
}

PushSpec PushSpecOf(const Compression& c) {
  PushSpec spec;
  if (c.push() >= Push::auto_) {
    if (c.push() == Push::auto_) spec.choose = ChoiceRule::kAuto;
    if (c.push() == Push::fastest) spec.choose = ChoiceRule::kFastest;
    if (c.push() == Push::adaptive) spec.adaptive = AdaptiveSpecOf(c);
    for (int codec : c.auto_codecs()) spec.candidates.push_back(PushCodecOf(CodecOf(codec), c));
    if (spec.candidates.empty()) {
      for (CodecId codec : kDefaultCandidates) spec.candidates.push_back(PushCodecOf(codec, c));
    }
    spec.codec = PushCodecOf(CodecId::kFp32, c);
  } else {
    spec.codec = PushCodecOf(CodecOf(c.push()), c);
  }
  spec.error_feedback = c.error_feedback();
  spec.warmup = {.density = DensityWarmupOf(c),
                 .first_part = c.first_push_part(),
                 .first = PushCodecOf(CodecOf(c.first_push()), c)};
  spec.correction = {.enabled = c.momentum_correction(),
                     .momentum = static_cast<float>(c.correction_momentum()),
                     .nesterov = c.correction_nesterov(),
                     .factor_masking = c.factor_masking()};
  spec.gradient_clip = c.gradient_clip();
  return spec;
}

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
  if (!group.has_push() && (c.push() == Push::topk || c.push() == Push::randomk)) {
    spec.push = PushCodecOf(CodecOf(c.push()), c);
  }
  if (spec.push.has_value() && IsSparse(spec.push->id)) {
    spec.push->density = group.density();
  } else {
    problems.Add(place + ".density",
                 absl::StrCat("only valid with push: topk or randomk (got push: ",
                              group.has_push() ? Compression::Codec::Value_Name(group.push())
                                               : Push::Value_Name(c.push()),
                              ")"));
  }
  return spec;
}

std::optional<PublishOptions> PublishOptionsOf(const Compression& c) {
  if (c.pull() < Pull::delta) return std::nullopt;
  PublishOptions options{.log_bytes = c.version_log_bytes(), .every = c.publish_every()};
  if (c.pull() != Pull::delta) {
    options.codec = CodecSpecOf(CodecOf(c.pull() - Pull::delta), c);
    options.codec->density = c.pull_density();
    options.codec->values = CodecOf(c.pull_topk_values());
  }
  return options;
}

TaskSpec TaskSpecOf(const Task& t) {
  return {.model = static_cast<ModelKind>(t.model()),
          .model_file = t.model_file(),
          .dataset = static_cast<DatasetKind>(t.dataset()),
          .data_dir = t.data_dir(),
          .batch_size = t.batch_size(),
          .epochs = t.epochs(),
          .seed = t.seed(),
          .device = t.device(),
          .threads = t.threads(),
          .train_examples = t.train_examples(),
          .test_examples = t.test_examples(),
          .precision = static_cast<Precision>(t.precision()),
          .loss_scale = t.loss_scale(),
          .loss_scale_interval = t.loss_scale_interval(),
          .stop_on_divergence = t.stop_on_divergence(),
          .local = {.count = t.local_steps(),
                    .optimizer = static_cast<LocalOptimizerKind>(t.local_optimizer()),
                    .learning_rate = t.local_learning_rate(),
                    .momentum = t.local_momentum(),
                    .weight_decay = t.local_weight_decay()},
          .accumulate = t.accumulate(),
          .loss = static_cast<LossKind>(t.loss())};
}

RecoverySpec RecoverySpecOf(const Recovery& r) {
  return {.durability = static_cast<Durability>(r.durability()),
          .checkpoint_interval = absl::Seconds(r.checkpoint_seconds()),
          .failure_interval = absl::Seconds(r.failure_seconds()),
          .server_return = absl::Seconds(r.server_return_seconds()),
          .keep_log = r.keep_log(),
          .retention = {.newest_count = r.keep_checkpoints(), .every = r.keep_every()}};
}

JobSpec JobSpecOf(const JobConfig& config, Problems& problems) {
  JobSpec spec;
  spec.name = config.name();
  spec.server_count = config.servers();
  spec.rule = RuleOf(config.consistency());
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

Rule RuleOf(const Consistency& c) {
  Rule rule = ModeOf(c);
  rule.max_workers = c.max_workers() != 0 ? c.max_workers() : std::max(c.workers(), kMaxWorkers);
  return rule;
}

absl::StatusOr<JobSpec> CheckJob(const JobConfig& config, const FieldPlaces& places, JobUse use) {
  Problems problems = UselessFields(config);
  const JobSpec spec = JobSpecOf(config, problems);
  if (use == JobUse::kProcesses && spec.push.adaptive.has_value()) {
    if (spec.recovery.durability != Durability::kCheckpoint) {
      problems.Add(
          "push",
          absl::StrCat("adaptive returns to checkpoints (expected durability: checkpoint, "
                       "got durability: ",
                       Recovery::Durability::Value_Name(config.recovery().durability()), ")"));
    }
  }
  if (use == JobUse::kVirtualTime && Traits(spec.optimizer.kind).holds_average) {
    problems.Add("optimizer", "average needs workers in Python (expected another, got average)");
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
  return absl::InvalidArgumentError(absl::StrJoin(
      all, "\n",
      [&](std::string* out, const Problem& problem) { out->append(LineOf(problem, places)); }));
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

absl::StatusOr<std::vector<std::string>> ParseAddresses(std::string_view text,
                                                        uint32_t server_count,
                                                        std::optional<ServerId> own) {
  const std::vector<std::string> addresses = absl::StrSplit(std::string(text), ',');
  for (auto address = addresses.begin(); address != addresses.end(); ++address) {
    const bool is_own = own.has_value() && address - addresses.begin() == own->value;
    if (!IsAddress(*address, is_own ? 0 : 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--addresses: wrong value (expected host:port with a port from 1 to 65535, "
                       "got \"",
                       *address, "\")"));
    }
    const auto first = std::find(addresses.begin(), address, *address);
    if (first != address) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--addresses: one address for two servers (expected an address per server, got ",
          *address, " for servers ", first - addresses.begin(), " and ",
          address - addresses.begin(), ")"));
    }
  }
  if (addresses.size() != server_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("--addresses: wrong number of servers (expected ", server_count,
                     ", the value of servers, got ", addresses.size(), ")"));
  }
  return addresses;
}

bool IsAddress(std::string_view address, int least_port) {
  const size_t colon = address.rfind(':');
  int port = 0;
  return colon != std::string_view::npos && colon > 0 &&
         absl::SimpleAtoi(std::string(address.substr(colon + 1)), &port) && port >= least_port &&
         port <= 65535;
}

bool IsLoopback(std::string_view address) {
  if (address.starts_with("unix:")) return true;
  const std::string_view host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // Accepts only digits and periods after "127.", because the name of another machine may also
  // begin with "127.".
  return host.starts_with("127.") &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

absl::Status CheckPlaintext(const std::string& flag, const std::vector<std::string>& addresses,
                            bool has_credentials, bool insecure) {
  if (has_credentials && insecure) {
    return absl::InvalidArgumentError("--insecure: not valid with --credentials");
  }
  if (has_credentials || insecure) return absl::OkStatus();
  const auto exposed = std::ranges::find_if_not(addresses, IsLoopback);
  if (exposed == addresses.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flag,
      ": reachable from other machines without credentials (expected --credentials, an address of "
      "this machine such as 127.0.0.1:7000, or --insecure in a network that nobody else reaches, "
      "got ",
      *exposed, ")"));
}

}  // namespace thinwire
