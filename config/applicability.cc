#include "config/applicability.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/spec/optimizer_spec.h"
#include "config/fields.h"

namespace thinwire {
namespace {

using Codec = Compression::Codec;
using Mode = Consistency::Mode;
using Optimizer = Optimization::Optimizer;
using Pull = Compression::Pull;
using Push = Compression::Push;
using Schedule = Optimization::Schedule;
using Staleness = Consistency::StalenessPolicy;

bool ModeIs(const JobConfig& config, std::initializer_list<int> modes) {
  for (int mode : modes) {
    if (config.consistency().mode() == mode) return true;
  }
  return false;
}

// Returns true if gradients of the job may be stale and POLICY treats them.
bool TreatsStale(const JobConfig& config, int policy) {
  return ModeIs(config, {Mode::ssp, Mode::async}) &&
         config.consistency().staleness_policy() == policy;
}

// Returns true if the push codec is chosen at run time.
bool ChoosesPush(const JobConfig& config) { return config.compression().push() >= Push::auto_; }

bool PushIsAdaptive(const JobConfig& config) {
  return config.compression().push() == Push::adaptive;
}

// Returns true if the push codec may be chosen among auto_codecs.
bool ReadsAutoCodecs(const JobConfig& config) {
  if (!PushIsAdaptive(config)) return ChoosesPush(config);
  const auto& candidates = config.compression().adaptive_candidates();
  return candidates.empty() || std::ranges::count(candidates, int{Push::fastest}) > 0;
}

bool PullsDeltas(const JobConfig& config) { return config.compression().pull() >= Pull::delta; }

bool Selects(const JobConfig& config) {
  return config.optimization().gradient_selection() == Optimization::GradientSelection::gtopk;
}

// Returns true if the job or a parameter group has an optimizer that reads a setting.
bool AnOptimizer(const JobConfig& config, bool OptimizerTraits::*uses) {
  if (kOptimizers[config.optimization().optimizer()].*uses) return true;
  return std::ranges::any_of(config.parameter_group(), [uses](const ParameterGroup& group) {
    return group.has_optimizer() && kOptimizers[group.optimizer()].*uses;
  });
}

// Returns true if pushes of the job may use one of CODECS as the codec of a whole gradient.
bool Pushes(const JobConfig& config, std::initializer_list<int> codecs) {
  const Compression& c = config.compression();
  for (int codec : codecs) {
    if (c.push() == codec) return true;
    for (const ParameterGroup& group : config.parameter_group()) {
      if (group.has_push() && group.push() == codec) return true;
    }
    if (c.first_push_part() > 0 && c.first_push() == codec) return true;
    if (PushIsAdaptive(config) && std::ranges::count(c.adaptive_candidates(), codec) > 0) {
      return true;
    }
    if (ReadsAutoCodecs(config) && std::ranges::count(c.auto_codecs(), codec) > 0) return true;
  }
  return false;
}

bool PushesSparse(const JobConfig& config) { return Pushes(config, {Codec::topk, Codec::randomk}); }

bool PushesPowerSgd(const JobConfig& config) { return Pushes(config, {Codec::powersgd}); }

bool PullsDeltasIn(const JobConfig& config, std::initializer_list<int> codecs) {
  for (int codec : codecs) {
    if (config.compression().pull() == Pull::delta + codec) return true;
  }
  return false;
}

bool PullsSparse(const JobConfig& config) {
  return PullsDeltasIn(config, {Codec::topk, Codec::randomk});
}

// Returns true if pushes of the job may use a codec that encodes values with topk_values.
bool PushesValues(const JobConfig& config) {
  return PushesSparse(config) || PushesPowerSgd(config);
}

// Returns true if pushes or pulls of the job may use one of CODECS, directly or for the values of a
// sparse codec or of powersgd.
bool Uses(const JobConfig& config, std::initializer_list<int> codecs) {
  if (Pushes(config, codecs) || PullsDeltasIn(config, codecs)) return true;
  for (int codec : codecs) {
    if (PushesValues(config) && config.compression().topk_values() == codec) return true;
    if (PullsSparse(config) && config.compression().pull_topk_values() == codec) return true;
  }
  return false;
}

// Returns true if residuals may contain values other than 0.
bool LosesValues(const JobConfig& config) {
  const Compression& c = config.compression();
  const bool of_group = std::ranges::any_of(
      config.parameter_group(),
      [](const ParameterGroup& group) { return group.has_push() && group.push() != Codec::fp32; });
  return ChoosesPush(config) || c.push() != Push::fp32 || of_group || c.first_push_part() > 0 ||
         c.momentum_correction() || Selects(config);
}

// Returns a text that lists the optimizers that read a setting. Example: "optimizer: momentum or
// nesterov".
std::string OptimizersWith(bool OptimizerTraits::*uses) {
  std::vector<std::string> names;
  for (const OptimizerTraits& optimizer : kOptimizers) {
    if (optimizer.*uses) names.emplace_back(optimizer.name);
  }
  const std::string last = names.back();
  names.pop_back();
  return absl::StrCat("optimizer: ", absl::StrJoin(names, ", "), names.empty() ? "" : " or ", last);
}

struct Condition {
  // The job file fields that have an effect only if holds() returns true.
  std::vector<std::string_view> fields;
  bool (*holds)(const JobConfig& config);
  std::string text;
  // The fields that holds() reads. Error messages show the values of these fields.
  std::vector<std::string_view> deciders;
};

const std::vector<Condition>& Conditions() {
  static const std::vector<Condition> conditions = {
      {{"backup", "auto_backup"},
       [](const JobConfig& c) { return ModeIs(c, {Mode::backup}); },
       "mode: backup",
       {"mode"}},
      {{"slack", "auto_slack"},
       [](const JobConfig& c) { return ModeIs(c, {Mode::ssp}); },
       "mode: ssp",
       {"mode"}},
      {{"in_flight"},
       [](const JobConfig& c) {
         return ModeIs(c, {Mode::ssp, Mode::async}) && !ChoosesPush(c);
       },
       "mode: ssp or async and a push codec that is not chosen at run time",
       {"mode", "push"}},
      {{"delayed_gradient"},
       [](const JobConfig& c) {
         return ModeIs(c, {Mode::sync, Mode::backup}) && !c.consistency().auto_backup() &&
                !ChoosesPush(c) && !kOptimizers[c.optimization().optimizer()].holds_average &&
                c.optimization().selection_rest() != Optimization::SelectionRest::workers;
       },
       "mode: sync or backup, without auto_backup, a push codec that is chosen at run time, "
       "optimizer: "
       "average and selection_rest: workers",
       {"mode", "auto_backup", "push", "optimizer", "selection_rest"}},
      {{"fold_every", "staleness_policy"},
       [](const JobConfig& c) {
         return ModeIs(c, {Mode::ssp, Mode::async});
       },
       "mode: ssp or async",
       {"mode"}},
      {{"staleness_bound"},
       [](const JobConfig& c) { return TreatsStale(c, Staleness::drop); },
       "staleness_policy: drop and mode: ssp or async",
       {"staleness_policy", "mode"}},
      {{"dcasgd_lambda"},
       [](const JobConfig& c) { return TreatsStale(c, Staleness::dcasgd); },
       "staleness_policy: dcasgd and mode: ssp or async",
       {"staleness_policy", "mode"}},
      {{"ordered_fold"},
       [](const JobConfig& c) { return ModeIs(c, {Mode::sync}); },
       "mode: sync",
       {"mode"}},
      {{"learning_rate", "weight_decay", "schedule", "warmup", "parameter_average", "lazy_slots"},
       [](const JobConfig& c) { return !kOptimizers[c.optimization().optimizer()].holds_average; },
       "an optimizer other than average",
       {"optimizer"}},
      {{"momentum"},
       [](const JobConfig& c) { return AnOptimizer(c, &OptimizerTraits::uses_momentum); },
       OptimizersWith(&OptimizerTraits::uses_momentum),
       {"optimizer"}},
      {{"beta1", "beta2"},
       [](const JobConfig& c) { return AnOptimizer(c, &OptimizerTraits::uses_betas); },
       OptimizersWith(&OptimizerTraits::uses_betas),
       {"optimizer"}},
      {{"epsilon"},
       [](const JobConfig& c) { return AnOptimizer(c, &OptimizerTraits::uses_epsilon); },
       OptimizersWith(&OptimizerTraits::uses_epsilon),
       {"optimizer"}},
      {{"trust_coefficient"},
       [](const JobConfig& c) { return AnOptimizer(c, &OptimizerTraits::uses_trust_coefficient); },
       OptimizersWith(&OptimizerTraits::uses_trust_coefficient),
       {"optimizer"}},
      {{"decay_at", "decay_factor"},
       [](const JobConfig& c) { return c.optimization().schedule() == Schedule::step; },
       "schedule: step",
       {"schedule"}},
      {{"power"},
       [](const JobConfig& c) { return c.optimization().schedule() == Schedule::polynomial; },
       "schedule: polynomial",
       {"schedule"}},
      {{"largest_batch", "growth_ratio"},
       [](const JobConfig& c) { return c.optimization().schedule() == Schedule::noise_scale; },
       "schedule: noise_scale",
       {"schedule"}},
      {{"selection_density", "selection_rest"},
       Selects,
       "gradient_selection: gtopk",
       {"gradient_selection"}},
      {{"density"}, PushesSparse, "push: topk or randomk", {"push"}},
      {{"topk_values"}, PushesValues, "push: topk, randomk or powersgd", {"push"}},
      {{"powersgd_rank"}, PushesPowerSgd, "push: powersgd", {"push"}},
      {{"topk_indices"},
       [](const JobConfig& c) {
         return Pushes(c, {Codec::topk}) || PullsDeltasIn(c, {Codec::topk});
       },
       "push: topk or pull: delta_topk",
       {"push", "pull"}},
      {{"topk_least"},
       [](const JobConfig& c) {
         return Pushes(c, {Codec::topk}) || PullsDeltasIn(c, {Codec::topk}) || Selects(c);
       },
       "push: topk, pull: delta_topk or gradient_selection: gtopk",
       {"push", "pull", "gradient_selection"}},
      {{"density_warmup"},
       [](const JobConfig& c) { return (PushesSparse(c) && !ChoosesPush(c)) || Selects(c); },
       "push: topk or randomk, or gradient_selection: gtopk",
       {"push", "gradient_selection"}},
      {{"warmup_density"},
       [](const JobConfig& c) {
         return c.compression().density_warmup() > 0 &&
                ((PushesSparse(c) && !ChoosesPush(c)) || Selects(c));
       },
       "a density_warmup above 0",
       {"density_warmup"}},
      {{"error_feedback"},
       LosesValues,
       "a push other than fp32, momentum_correction or gradient_selection: gtopk",
       {"push"}},
      {{"correction_momentum", "correction_nesterov"},
       [](const JobConfig& c) { return c.compression().momentum_correction(); },
       "momentum_correction: true",
       {"momentum_correction"}},
      {{"factor_masking"},
       [](const JobConfig& c) { return c.compression().momentum_correction() && PushesSparse(c); },
       "momentum_correction: true and push: topk or randomk",
       {"momentum_correction", "push"}},
      {{"first_push_part"},
       [](const JobConfig& c) { return !ChoosesPush(c); },
       "a push other than auto, fastest and adaptive",
       {"push"}},
      {{"first_push"},
       [](const JobConfig& c) { return c.compression().first_push_part() > 0; },
       "a first_push_part above 0",
       {"first_push_part"}},
      {{"auto_codecs"},
       ReadsAutoCodecs,
       "push: auto or fastest, or the candidate fastest of push: adaptive",
       {"push"}},
      {{"adaptive_candidates", "adaptive_speculate_steps", "adaptive_continue_steps",
        "adaptive_prune", "adaptive_per_layer"},
       PushIsAdaptive,
       "push: adaptive",
       {"push"}},
      {{"pull_density", "pull_topk_values"},
       PullsSparse,
       "pull: delta_topk or delta_randomk",
       {"pull"}},
      {{"version_log_bytes"}, PullsDeltas, "pull: delta or delta_CODEC", {"pull"}},
      {{"publish_every"},
       [](const JobConfig& c) {
         return PullsDeltas(c) && ModeIs(c, {Mode::ssp, Mode::async});
       },
       "pull: delta or delta_CODEC and mode: ssp or async",
       {"pull", "mode"}},
      {{"twobit_threshold"},
       [](const JobConfig& c) { return Uses(c, {Codec::twobit}); },
       "codec twobit in push or pull",
       {"push", "pull"}},
      {{"qsgd_levels"},
       [](const JobConfig& c) { return Uses(c, {Codec::qsgd}); },
       "codec qsgd in push or pull",
       {"push", "pull"}},
      {{"onebit_group"},
       [](const JobConfig& c) {
         return Uses(c, {Codec::onebit, Codec::onebit_sign});
       },
       "codec onebit or onebit_sign in push or pull",
       {"push", "pull"}},
      {{"model_file", "loss"},
       [](const JobConfig& c) { return c.task().model() == Task::Model::torchscript; },
       "model: torchscript",
       {"model"}},
      {{"checkpoint_seconds", "server_return_seconds", "keep_checkpoints", "keep_every"},
       [](const JobConfig& c) { return c.recovery().durability() != Recovery::Durability::none; },
       "durability: checkpoint or log",
       {"durability"}},
      {{"failure_seconds"},
       [](const JobConfig& c) {
         return c.recovery().durability() != Recovery::Durability::none &&
                c.recovery().has_checkpoint_seconds() && c.recovery().checkpoint_seconds() == 0;
       },
       "checkpoint_seconds: 0",
       {"checkpoint_seconds"}},
      {{"keep_log"},
       [](const JobConfig& c) { return c.recovery().durability() == Recovery::Durability::log; },
       "durability: log",
       {"durability"}},
      {{"loss_scale_interval"},
       [](const JobConfig& c) {
         return c.task().precision() == Task::Precision::fp16 || c.task().loss_scale() > 0;
       },
       "precision: fp16 or a loss_scale above 0",
       {"precision", "loss_scale"}},
      {{"local_optimizer", "local_learning_rate", "local_weight_decay"},
       [](const JobConfig& c) { return c.task().local_steps() > 1; },
       "local_steps above 1",
       {"local_steps"}},
      {{"local_momentum"},
       [](const JobConfig& c) {
         return c.task().local_steps() > 1 &&
                c.task().local_optimizer() == Task::LocalOptimizer::momentum;
       },
       "local_optimizer: momentum and local_steps above 1",
       {"local_optimizer", "local_steps"}},
  };
  return conditions;
}

const Condition* ConditionOf(std::string_view name) {
  for (const Condition& condition : Conditions()) {
    for (std::string_view field : condition.fields) {
      if (field == name) return &condition;
    }
  }
  return nullptr;
}

}  // namespace

bool Applies(std::string_view name, const JobConfig& config) {
  const Condition* condition = ConditionOf(name);
  return condition == nullptr || condition->holds(config);
}

Problems UselessFields(const JobConfig& config) {
  Problems problems;
  const std::vector<Field> fields = Settings(*JobConfig::descriptor());
  const auto value_of = [&](std::string_view name) {
    for (const Field& field : fields) {
      if (field.name() == name) return absl::StrCat(field.name(), ": ", ValueText(config, field));
    }
    return std::string(name);
  };
  for (const Field& field : fields) {
    const Condition* condition = ConditionOf(field.name());
    if (condition == nullptr || condition->holds(config) || !IsGiven(config, field)) continue;
    std::vector<std::string> got;
    for (std::string_view decider : condition->deciders) got.push_back(value_of(decider));
    problems.Add(field.name(), absl::StrCat("only valid with ", condition->text, " (got ",
                                            absl::StrJoin(got, ", "), ")"));
  }
  return problems;
}

void DropReplacedFields(JobConfig& config, FieldPlaces& places) {
  const auto is_flag = [&](std::string_view name) {
    const auto place = places.find(std::string(name));
    return place != places.end() && !IsFilePlace(place->second);
  };
  const JobConfig given = config;
  for (const Field& field : Settings(*JobConfig::descriptor())) {
    const Condition* condition = ConditionOf(field.name());
    if (condition == nullptr || condition->holds(given) || !IsGiven(given, field)) continue;
    if (is_flag(field.name()) || std::ranges::none_of(condition->deciders, is_flag)) continue;
    Clear(config, field);
    places.erase(field.name());
  }
}

}  // namespace thinwire
