#include "config/parts/compression.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "config/parts/consistency.h"
#include "config/parts/optimization.h"

namespace thinwire {
namespace {

using Named = Compression::Codec;
using Mode = Consistency::Mode;

DensityWarmup DensityWarmupOf(const Compression& c) {
  return {.part = c.density_warmup(), .first = c.warmup_density()};
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

// The default candidates of the settings `push: auto` and `push: fastest`. fp16 is not a candidate,
// because a gradient may be too large for fp16.
constexpr CodecId kDefaultCandidates[] = {CodecId::kBf16, CodecId::kFp8E4m3, CodecId::kFp8E5m2};

// The default candidates of the setting `push: adaptive`: those of AdaPrec.
constexpr int kDefaultArms[] = {Named::fp32, Named::fp8_e5m2, Named::table_1, Named::fastest};

AdaptiveSpec AdaptiveSpecOf(const Compression& c) {
  AdaptiveSpec spec{.speculate_steps = c.adaptive_speculate_steps(),
                    .continue_steps = c.adaptive_continue_steps(),
                    .prune = c.adaptive_prune(),
                    .per_layer = c.adaptive_per_layer()};
  std::vector<int> arms(c.adaptive_candidates().begin(), c.adaptive_candidates().end());
  if (arms.empty()) arms.assign(std::begin(kDefaultArms), std::end(kDefaultArms));
  for (const int arm : arms) {
    const bool fastest = arm == Named::fastest;
    spec.arms.push_back(
        {.fastest = fastest, .codec = PushCodecOf(CodecOf(fastest ? Named::fp32 : arm), c)});
  }
  return spec;
}

bool PushIsAdaptive(const JobConfig& config) {
  return config.compression().push() == Named::adaptive;
}

// Returns true if the push codec may be chosen among auto_codecs.
bool ReadsAutoCodecs(const JobConfig& config) {
  if (!PushIsAdaptive(config)) return ChoosesPush(config);
  const auto& candidates = config.compression().adaptive_candidates();
  return candidates.empty() || std::ranges::count(candidates, int{Named::fastest}) > 0;
}

bool PullsDeltas(const JobConfig& config) { return config.compression().pull() >= Named::delta; }

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

bool PushesSparse(const JobConfig& config) { return Pushes(config, {Named::topk, Named::randomk}); }

// Returns true if pushes of the job may use a codec that reads the density.
bool PushesPart(const JobConfig& config) {
  return Pushes(config, {Named::topk, Named::randomk, Named::dct_topk});
}

bool PushesPowerSgd(const JobConfig& config) { return Pushes(config, {Named::powersgd}); }

bool PullsDeltasIn(const JobConfig& config, std::initializer_list<int> codecs) {
  for (int codec : codecs) {
    if (config.compression().pull() == Named::delta + codec) return true;
  }
  return false;
}

bool PullsSparse(const JobConfig& config) {
  return PullsDeltasIn(config, {Named::topk, Named::randomk});
}

// Returns true if pushes of the job may use a codec that encodes values with topk_values.
bool PushesValues(const JobConfig& config) { return PushesPart(config) || PushesPowerSgd(config); }

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
      [](const ParameterGroup& group) { return group.has_push() && group.push() != Named::fp32; });
  return ChoosesPush(config) || c.push() != Named::fp32 || of_group || c.first_push_part() > 0 ||
         c.momentum_correction() || Selects(config);
}

}  // namespace

// The numbers of job.proto are those of the wire. job_test.cc compares the names.
CodecId CodecOf(int value) { return static_cast<CodecId>(value); }

CodecSpec PushCodecOf(CodecId id, const Compression& c) {
  CodecSpec spec = CodecSpecOf(id, c);
  spec.density = c.density();
  spec.values = CodecOf(c.topk_values());
  // Without error feedback, values that randomk does not select are never sent later. Therefore the
  // sent values must be scaled so that the gradient is unbiased.
  spec.unbiased = !c.error_feedback();
  return spec;
}

PushSpec PushSpecOf(const Compression& c) {
  PushSpec spec;
  if (c.push() >= Named::auto_) {
    if (c.push() == Named::auto_) spec.choose = ChoiceRule::kAuto;
    if (c.push() == Named::fastest) spec.choose = ChoiceRule::kFastest;
    if (c.push() == Named::adaptive) spec.adaptive = AdaptiveSpecOf(c);
    for (int codec : c.auto_codecs()) spec.candidates.push_back(PushCodecOf(CodecOf(codec), c));
    if (spec.candidates.empty()) {
      for (CodecId codec : kDefaultCandidates) spec.candidates.push_back(PushCodecOf(codec, c));
    }
    spec.codec = PushCodecOf(CodecId::kFp32, c);
  } else {
    spec.codec = PushCodecOf(CodecOf(c.push()), c);
  }
  spec.error_feedback = c.error_feedback();
  spec.residual_decay = c.residual_decay();
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

std::optional<PublishOptions> PublishOptionsOf(const Compression& c) {
  if (c.pull() < Named::delta) return std::nullopt;
  PublishOptions options{.log_bytes = c.version_log_bytes(), .every = c.publish_every()};
  if (c.pull() != Named::delta) {
    options.codec = CodecSpecOf(CodecOf(c.pull() - Named::delta), c);
    options.codec->density = c.pull_density();
    options.codec->values = CodecOf(c.pull_topk_values());
  }
  return options;
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

std::vector<Condition> CompressionConditions() {
  return {
      {{"density"}, PushesPart, "push: topk, randomk or dct_topk", {"push"}},
      {{"topk_values"}, PushesValues, "push: topk, randomk, dct_topk or powersgd", {"push"}},
      {{"powersgd_rank"}, PushesPowerSgd, "push: powersgd", {"push"}},
      {{"topk_indices"},
       [](const JobConfig& c) {
         return Pushes(c, {Named::topk, Named::dct_topk}) || PullsDeltasIn(c, {Named::topk});
       },
       "push: topk or dct_topk, or pull: delta_topk",
       {"push", "pull"}},
      {{"topk_least"},
       [](const JobConfig& c) {
         return Pushes(c, {Named::topk}) || PullsDeltasIn(c, {Named::topk}) || Selects(c);
       },
       "push: topk, pull: delta_topk or gradient_selection: gtopk",
       {"push", "pull", "gradient_selection"}},
      {{"density_warmup"},
       [](const JobConfig& c) { return (PushesPart(c) && !ChoosesPush(c)) || Selects(c); },
       "push: topk, randomk or dct_topk, or gradient_selection: gtopk",
       {"push", "gradient_selection"}},
      {{"warmup_density"},
       [](const JobConfig& c) {
         return c.compression().density_warmup() > 0 &&
                ((PushesPart(c) && !ChoosesPush(c)) || Selects(c));
       },
       "a density_warmup above 0",
       {"density_warmup"}},
      {{"error_feedback"},
       LosesValues,
       "a push other than fp32, momentum_correction or gradient_selection: gtopk",
       {"push"}},
      {{"residual_decay"},
       [](const JobConfig& c) {
         return LosesValues(c) && c.compression().error_feedback() &&
                !c.compression().momentum_correction();
       },
       "a push other than fp32, error_feedback: true and momentum_correction: false",
       {"push", "error_feedback", "momentum_correction"}},
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
       [](const JobConfig& c) { return Uses(c, {Named::twobit}); },
       "codec twobit in push or pull",
       {"push", "pull"}},
      {{"qsgd_levels"},
       [](const JobConfig& c) { return Uses(c, {Named::qsgd}); },
       "codec qsgd in push or pull",
       {"push", "pull"}},
      {{"onebit_group"},
       [](const JobConfig& c) {
         return Uses(c, {Named::onebit, Named::onebit_sign});
       },
       "codec onebit or onebit_sign in push or pull",
       {"push", "pull"}},
  };
}

}  // namespace thinwire
