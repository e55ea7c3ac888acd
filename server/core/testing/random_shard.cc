#include "server/core/testing/random_shard.h"

#include <cstdint>
#include <iterator>
#include <utility>
#include <variant>
#include <vector>

#include "common/codec/codec_cases.h"

namespace thinwire {

Event RandomShard::NextEvent(RandomEvents& events, const Shard& shard) const {
  Event event = Widened(events.Next(shard), options.value_count);
  if (options.publish.has_value()) return event;
  const auto replace = [](ReadForm& form) {
    if (form.published) form = ReadForm();
  };
  if (auto* read = std::get_if<ReadEvent>(&event)) replace(read->form);
  if (auto* push = std::get_if<PushEvent>(&event)) replace(push->read_form);
  return event;
}

RandomShard DrawShard(SeededRandom& random, size_t value_count) {
  RandomShard drawn;
  drawn.kind = static_cast<OptimizerKind>(random.Below(std::size(kOptimizers)));
  drawn.optimizer = MakeOptimizer({.kind = drawn.kind,
                                   .weight_decay = 0.03125,
                                   .parameter_average = random.Percent(50) ? 0.75 : 0})
                        .value();
  drawn.schedule = std::make_shared<const Schedule>(
      Schedule::Make({.kind = ScheduleKind::kPolynomial, .learning_rate = 0.5}).value());
  ShardOptions& options = drawn.options;
  options.value_count = value_count;
  options.planned_examples = 200;
  options.sparse_updates.lazy_slots = random.Percent(50) && !drawn.optimizer->reads_norms();
  if (random.Percent(60)) options.sparse_updates.selection_density = 0.125;
  const bool to_workers = options.sparse_updates.selection_density && random.Percent(50);
  if (to_workers) options.sparse_updates.unselected_owner = UnselectedOwner::kWorkers;
  options.rule = DrawRule(random, to_workers);
  if (options.rule.fold == Fold::kPush) {
    // Not dcasgd, which compensates fewer gradients after a shard was restored.
    constexpr StalenessPolicy kPolicies[] = {StalenessPolicy::kNone, StalenessPolicy::kDrop,
                                             StalenessPolicy::kScale};
    options.staleness = {.policy = kPolicies[random.Below(std::size(kPolicies))], .bound = 3};
  }
  if (random.Percent(40)) return drawn;
  options.publish.emplace();
  if (random.Percent(50)) options.publish->every = 1 + static_cast<uint32_t>(random.Below(4));
  const std::vector<CodecSpec> codecs = AllCodecSpecs();
  if (random.Percent(70)) options.publish->codec = codecs[random.Below(codecs.size())];
  return drawn;
}

}  // namespace thinwire
