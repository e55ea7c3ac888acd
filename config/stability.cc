#include "config/stability.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "config/applicability.h"

namespace thinwire {
namespace {

using Mode = Consistency::Mode;

// The bounds, measured with the model cnn on Fashion-MNIST (docs/training.md).
constexpr double kHighMomentum = 0.9;
constexpr double kLargestStaleStep = 0.7;  // of workers * learning_rate / (1 - momentum)
constexpr double kLeastRandomDensity = 0.2;

// The momentum that the job applies to gradients, at the workers or at the servers, and the name of
// the setting that sets it.
struct Momentum {
  double value = 0;
  std::string setting;
};

Momentum MomentumOf(const JobConfig& config) {
  if (config.compression().momentum_correction()) {
    return {config.compression().correction_momentum(), "correction_momentum"};
  }
  if (!Applies("momentum", config)) return {};
  return {config.optimization().momentum(), "momentum"};
}

bool HasStaleness(const JobConfig& config) {
  const int mode = config.consistency().mode();
  return (mode == Mode::ssp || mode == Mode::async) && config.consistency().workers() > 1;
}

// Returns true if residuals delay most values of a gradient, which acts as momentum, and nothing
// compensates for that.
bool ResidualsAddMomentum(const JobConfig& config) {
  return Applies("density", config) && config.compression().error_feedback() &&
         !config.compression().momentum_correction() && !config.optimization().lazy_slots();
}

}  // namespace

Problems StabilityWarnings(const JobConfig& config) {
  Problems warnings;
  const Momentum momentum = MomentumOf(config);
  if (momentum.value < kHighMomentum) return warnings;
  const double step = config.consistency().workers() * config.optimization().learning_rate() /
                      (1 - momentum.value) / config.consistency().fold_every();
  if (HasStaleness(config) && step >= kLargestStaleStep) {
    warnings.Add(
        momentum.setting,
        absl::StrFormat(
            "may diverge in mode %s with %d workers and learning_rate %g, because staleness acts "
            "as momentum (expected at most 0.5, or a learning_rate below %.3g, got %g)",
            Mode::Value_Name(config.consistency().mode()), config.consistency().workers(),
            config.optimization().learning_rate(),
            config.optimization().learning_rate() * kLargestStaleStep / step, momentum.value));
  }
  if (ResidualsAddMomentum(config) && config.compression().push() == Compression::Codec::randomk &&
      config.compression().density() < kLeastRandomDensity) {
    warnings.Add(
        momentum.setting,
        absl::StrFormat(
            "may diverge with push randomk and density %g, because residuals act as momentum "
            "(expected at most 0.5, momentum_correction, lazy_slots, or a density of at least %g, "
            "got "
            "%g)",
            config.compression().density(), kLeastRandomDensity, momentum.value));
  }
  return warnings;
}

std::string DivergenceAdvice(const JobConfig& config) {
  std::vector<std::string> advice = {"a lower learning_rate"};
  const Momentum momentum = MomentumOf(config);
  if (momentum.value > 0 && HasStaleness(config)) {
    advice.push_back(absl::StrCat("a lower ", momentum.setting,
                                  " (0.5 or 0, because staleness acts as momentum)"));
  }
  if (momentum.value > 0 && ResidualsAddMomentum(config)) {
    advice.push_back(
        "momentum 0, lazy_slots or momentum_correction (because a sparse push's residual acts as "
        "momentum)");
  }
  if (Applies("error_feedback", config) && !config.compression().error_feedback()) {
    advice.push_back("error_feedback: true");
  }
  if (config.compression().gradient_clip() == 0) advice.push_back("gradient_clip: 1");
  return absl::StrJoin(advice, ", ");
}

}  // namespace thinwire
