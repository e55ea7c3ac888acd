#include "server/core/testing/random_events.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

Rule DrawPlainMode(SeededRandom& random, uint32_t workers, bool sync_only) {
  const uint32_t fold_every = 1 + static_cast<uint32_t>(random.Below(4));
  switch (random.Below(sync_only ? 2 : 5)) {
    case 0:
      return Rule::Sync(workers);
    case 1:
      return Rule::Sync(workers, true);
    case 2:
      return Rule::Backup(workers, static_cast<uint32_t>(random.Below(workers)));
    case 3:
      return Rule::Ssp(workers, random.Below(4), fold_every);
    default:
      return Rule::Async(workers, fold_every);
  }
}

}  // namespace

RandomEvents::RandomEvents(const Rule& rule, uint64_t seed, bool rule_changes)
    : rule_(rule),
      random_(seed),
      rule_changes_(rule_changes),
      newest_(rule.workers),
      absent_(rule.workers, true) {}

Event RandomEvents::Next(const Shard& shard) {
  const bool again = !past_.empty() && random_.Percent(12);
  Event event = again ? past_[random_.Below(past_.size())] : DrawEvent(shard);
  past_.push_back(event);
  return event;
}

Event RandomEvents::DrawEvent(const Shard& shard) {
  if (rule_changes_ && random_.Percent(4)) {
    const Step from = shard.frontier() + random_.Below(5);
    return RuleEvent{DrawMode(random_, rule_.workers, /*sync_only=*/false), from};
  }
  if (shard.full() && random_.Percent(40)) {
    const bool other = random_.Percent(10);
    const Step step = other ? Step{random_.Below(8)} : shard.frontier();
    const auto norm = static_cast<double>(1 + random_.Below(3));
    return SumEvent{step, {.update = norm * norm, .masters = static_cast<double>(step.value)}};
  }
  const WorkerId worker = DrawWorker();
  // An absent worker (never joined, or left) usually joins next.
  if (absent_[worker.value] && random_.Percent(70)) return DrawJoin(worker);
  // Before the shard opens, pushes are not drawn, and events that help to open the shard are more
  // likely. Otherwise few runs would contain an accepted push.
  const uint64_t percent = random_.Below(shard.open() ? 100 : 40);
  if (percent < 3) return DrawJoin(worker);
  if (percent < 20) return DrawRead(shard, worker);
  if (percent < 28) return SeedEvent{Fp32Payload({0, 0})};
  if (percent < 29) return OpenEvent{};
  if (percent < 35) return ExpireEvent{worker, DrawIncarnation(worker)};
  if (percent < 39) return ReturnEvent{worker, DrawIncarnation(worker)};
  if (percent >= 41) return DrawPush(shard, worker);
  absent_[worker.value] = true;
  return LeaveEvent{worker, DrawIncarnation(worker)};
}

Event RandomEvents::DrawJoin(WorkerId worker) {
  if (random_.Percent(20)) return JoinEvent{worker, DrawIncarnation(worker)};
  absent_[worker.value] = false;
  return JoinEvent{worker, ++newest_[worker.value]};
}

Event RandomEvents::DrawRead(const Shard& shard, WorkerId worker) {
  ReadEvent read;
  read.worker = worker;
  read.incarnation = DrawIncarnation(read.worker);
  read.generation = DrawGeneration();
  read.step = DrawStep(shard, read.worker);
  read.form = DrawForm(shard);
  return read;
}

Event RandomEvents::DrawPush(const Shard& shard, WorkerId worker) {
  PushEvent push;
  push.worker = worker;
  push.incarnation = DrawIncarnation(push.worker);
  push.generation = DrawGeneration();
  push.step = DrawStep(shard, push.worker);
  push.examples = static_cast<uint32_t>(random_.Below(5));
  push.late_examples = random_.Percent(20) ? static_cast<uint32_t>(random_.Below(9)) : 0;
  push.computed_version = Version{random_.Below(shard.version().value + 2)};
  push.read_form = DrawForm(shard);
  if (random_.Percent(20)) push.rate_factor = static_cast<float>(random_.Below(16)) / 8;
  if (push.examples == 0) return push;
  // Values are small whole numbers, so that fp32 sums are exact in any order.
  const float mark = static_cast<float>(random_.Below(1 << 16));
  const float other = random_.Percent(5) ? std::numeric_limits<float>::infinity()
                                         : static_cast<float>(random_.Below(1000));
  push.payload = Fp32Payload({mark, other});
  return push;
}

WorkerId RandomEvents::DrawWorker() {
  return WorkerId{static_cast<uint32_t>(random_.Below(rule_.workers))};
}

Incarnation RandomEvents::DrawIncarnation(WorkerId worker) {
  const Incarnation newest = newest_[worker.value];
  if (random_.Percent(93)) return newest;
  return Incarnation{random_.Below(newest.value + 2)};
}

Generation RandomEvents::DrawGeneration() { return Generation{random_.Percent(2) ? 1u : 0u}; }

ReadForm RandomEvents::DrawForm(const Shard& shard) {
  if (random_.Percent(50)) return random_.Percent(20) ? CodecId::kBf16 : CodecId::kFp32;
  if (random_.Percent(20)) return ReadForm::Published();
  return ReadForm::Since(Version{random_.Below(shard.version().value + 2)});
}

Step RandomEvents::DrawStep(const Shard& shard, WorkerId worker) {
  const Step next = shard.next(worker);
  if (random_.Percent(40)) return std::max(next, shard.frontier());
  if (random_.Percent(40)) return next;
  const uint64_t around = random_.Percent(50) ? next.value : shard.frontier().value;
  const uint64_t step = around + random_.Below(6);
  return Step{step < 2 ? 0 : step - 2};
}

Event Widened(Event event, size_t value_count) {
  if (auto* seed = std::get_if<SeedEvent>(&event)) {
    seed->payload = Fp32Payload(std::vector<float>(value_count, 100));
  }
  auto* push = std::get_if<PushEvent>(&event);
  if (push == nullptr || push->examples == 0) return event;
  const std::vector<float> drawn = Values(push->payload);
  SeededRandom random(static_cast<uint64_t>(drawn[0]) + 1);
  const bool dense = random.Percent(15);
  std::vector<float> values(value_count);
  for (float& value : values) {
    if (dense || random.Percent(12)) value = static_cast<float>(1 + random.Below(1000));
  }
  values[random.Below(value_count)] = std::isfinite(drawn[1]) ? 1 : drawn[1];
  push->payload = dense ? Fp32Payload(values) : SparsePayload(values);
  return event;
}

Rule DrawRule(SeededRandom& random, bool sync_only) {
  const uint32_t workers = 1 + static_cast<uint32_t>(random.Below(4));
  return DrawMode(random, workers, sync_only);
}

Rule DrawMode(SeededRandom& random, uint32_t workers, bool sync_only) {
  Rule rule = DrawPlainMode(random, workers, sync_only);
  if (random.Percent(50)) {
    rule.in_flight = static_cast<uint32_t>(random.Below(rule.fold == Fold::kPush ? 4 : 2));
  }
  return rule;
}

}  // namespace thinwire
