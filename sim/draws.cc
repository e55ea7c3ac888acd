#include "sim/draws.h"

#include <cstdint>

#include "common/codec/codec.h"

namespace thinwire::sim {

std::optional<PublishOptions> DrawPublish(SeededRandom& random) {
  if (random.Percent(30)) return std::nullopt;
  PublishOptions publish;
  if (random.Percent(30)) publish.codec = CodecSpec{.id = CodecId::kFp8E5m2};
  if (random.Percent(30)) publish.codec = CodecSpec{.id = CodecId::kTopK, .density = 0.1};
  if (random.Percent(50)) publish.log_bytes = random.Below(60);
  if (random.Percent(50)) publish.every = static_cast<uint32_t>(random.Below(5));
  return publish;
}

Consistency DrawConsistency(SeededRandom& random, const Rule& rule) {
  Consistency consistency;
  consistency.set_mode(static_cast<Consistency::Mode::Value>(random.Below(4)));
  consistency.set_workers(rule.workers);
  consistency.set_max_workers(rule.max_workers);
  consistency.set_ordered_fold(rule.ordered_fold);
  // A job keeps these settings.
  consistency.set_delayed_gradient(rule.fold == Fold::kRound && rule.in_flight > 0);
  switch (consistency.mode()) {
    case Consistency::Mode::sync:
      break;
    case Consistency::Mode::backup:
      consistency.set_backup(static_cast<uint32_t>(random.Below(rule.workers)));
      break;
    case Consistency::Mode::ssp:
      consistency.set_slack(static_cast<uint32_t>(random.Below(4)));
      [[fallthrough]];
    case Consistency::Mode::async:
      consistency.set_fold_every(1 + static_cast<uint32_t>(random.Below(4)));
      consistency.set_in_flight(rule.fold == Fold::kPush ? rule.in_flight : 2);
  }
  return consistency;
}

}  // namespace thinwire::sim
