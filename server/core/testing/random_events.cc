#include "server/core/testing/random_events.h"

#include <algorithm>
#include <limits>

#include "server/core/testing/fakes.h"

namespace thinwire {

RandomEvents::RandomEvents(const Rule& rule, uint64_t seed)
    : rule_(rule), random_(seed), newest_(rule.workers), absent_(rule.workers, true) {}

Event RandomEvents::Next(const Shard& shard) {
  const bool again = !past_.empty() && random_.Percent(12);
  Event event = again ? past_[random_.Below(past_.size())] : DrawEvent(shard);
  past_.push_back(event);
  return event;
}

Event RandomEvents::DrawEvent(const Shard& shard) {
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

}  // namespace thinwire
