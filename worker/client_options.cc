#include "worker/client_options.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/codec/table.h"
#include "proto/codec_settings.h"
#include "proto/compression_check.h"
#include "proto/pull_choice.h"

namespace thinwire {
namespace {

// The codec NAME with the settings that gradients have.
absl::StatusOr<CodecSpec> PushCodec(const std::string& name, const Compression& compression) {
  absl::StatusOr<CodecSpec> spec = ParseCodec(name);
  if (!spec.ok()) return spec;
  const absl::StatusOr<CodecSpec> values = ParseCodec(compression.topk_values());
  if (!values.ok()) return values;
  spec->density = compression.density();
  spec->values = values->id;
  spec->unbiased = !compression.error_feedback();
  const absl::Status status = SetCodecSettings(compression, *spec);
  if (!status.ok()) return status;
  return spec;
}

// The names to choose from where none are given. fp16 is not among them: a gradient may be too
// large for it.
constexpr const char* kCandidates[] = {"bf16", "fp8_e4m3", "fp8_e5m2"};

// Where the push codec is chosen: how, and from what.
absl::Status SetChoice(const Compression& compression, ClientOptions& options) {
  options.choose = compression.push() == "fastest" ? ChoiceRule::kFastest : ChoiceRule::kAuto;
  std::vector<std::string> names(compression.auto_codecs().begin(),
                                 compression.auto_codecs().end());
  if (names.empty()) names.assign(std::begin(kCandidates), std::end(kCandidates));
  for (const std::string& name : names) {
    const absl::StatusOr<CodecSpec> candidate = PushCodec(name, compression);
    if (!candidate.ok()) return candidate.status();
    options.candidates.push_back(*candidate);
  }
  return absl::OkStatus();
}

absl::Status SetPush(const Compression& compression, ClientOptions& options) {
  const bool chosen = std::ranges::count(kPushRuleNames, compression.push()) > 0;
  if (chosen) {
    if (absl::Status status = SetChoice(compression, options); !status.ok()) return status;
  }
  const absl::StatusOr<CodecSpec> push =
      PushCodec(chosen ? "fp32" : compression.push(), compression);
  if (!push.ok()) return push.status();
  const absl::StatusOr<CodecSpec> first = PushCodec(compression.first_push(), compression);
  if (!first.ok()) return first.status();
  options.push = *push;
  options.warmup = {
      .density = {.part = compression.density_warmup(), .first = compression.warmup_density()},
      .first_part = compression.first_push_part(),
      .first = *first};
  options.correction = {.enabled = compression.momentum_correction(),
                        .momentum = static_cast<float>(compression.correction_momentum()),
                        .nesterov = compression.correction_nesterov(),
                        .factor_masking = compression.factor_masking()};
  options.error_feedback = compression.error_feedback();
  options.gradient_clip = compression.gradient_clip();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ClientOptions> MakeClientOptions(const WorkerConfig& config,
                                                const RunLength& planned) {
  ClientOptions options;
  options.job = config.job();
  options.worker = WorkerId{config.worker()};
  options.worker_count = config.workers();
  options.server_count = static_cast<uint32_t>(config.servers_size());
  options.shard_size = config.compression().shard_size();
  options.planned_examples = planned.examples;
  options.planned_steps = planned.steps;
  options.pull = std::nullopt;
  if (const std::string& pull = config.compression().pull(); !ParsePull(pull).deltas) {
    const absl::StatusOr<CodecSpec> spec = ParseCodec(pull);
    if (!spec.ok()) return spec.status();
    options.pull = spec->id;
  }
  options.silence = absl::Seconds(config.silence_seconds());
  options.residual_file = config.residual_file();
  const absl::Status status = SetPush(config.compression(), options);
  if (!status.ok()) return status;
  return options;
}

}  // namespace thinwire
