#include "server/core/testing/histories.h"

#include <algorithm>
#include <limits>

#include "server/core/testing/fakes.h"

namespace thinwire {

History::History(const Rule& rule, uint64_t seed)
    : rule_(rule), dice_(seed), newest_(rule.workers), absent_(rule.workers, true) {}

Event History::Next(const Shard& shard) {
  const bool again = !past_.empty() && dice_.Percent(12);
  Event event = again ? past_[dice_.Below(past_.size())] : DrawEvent(shard);
  past_.push_back(event);
  return event;
}

Event History::DrawEvent(const Shard& shard) {
  const WorkerId worker = DrawWorker();
  // One who is not there has little to say.
  if (absent_[worker.value] && dice_.Percent(70)) return DrawJoin(worker);
  // Until the shard is open mostly what opens it is drawn, or else few histories would ever come to
  // a push.
  const uint64_t die = dice_.Below(shard.open() ? 100 : 40);
  if (die < 3) return DrawJoin(worker);
  if (die < 20) return DrawRead(shard, worker);
  if (die < 28) return SeedEvent{Fp32Payload({0, 0})};
  if (die < 29) return OpenEvent{};
  if (die < 35) return ExpireEvent{worker, DrawIncarnation(worker)};
  if (die < 39) return ReturnEvent{worker, DrawIncarnation(worker)};
  if (die >= 41) return DrawPush(shard, worker);
  absent_[worker.value] = true;
  return LeaveEvent{worker, DrawIncarnation(worker)};
}

Event History::DrawJoin(WorkerId worker) {
  if (dice_.Percent(20)) return JoinEvent{worker, DrawIncarnation(worker)};
  absent_[worker.value] = false;
  return JoinEvent{worker, ++newest_[worker.value]};
}

Event History::DrawRead(const Shard& shard, WorkerId worker) {
  ReadEvent read;
  read.worker = worker;
  read.incarnation = DrawIncarnation(read.worker);
  read.generation = DrawGeneration();
  read.step = DrawStep(shard, read.worker);
  read.form = DrawForm(shard);
  return read;
}

Event History::DrawPush(const Shard& shard, WorkerId worker) {
  PushEvent push;
  push.worker = worker;
  push.incarnation = DrawIncarnation(push.worker);
  push.generation = DrawGeneration();
  push.step = DrawStep(shard, push.worker);
  push.examples = static_cast<uint32_t>(dice_.Below(5));
  push.late_examples = dice_.Percent(20) ? static_cast<uint32_t>(dice_.Below(9)) : 0;
  push.computed_version = Version{dice_.Below(shard.version().value + 2)};
  push.read_form = DrawForm(shard);
  if (push.examples == 0) return push;
  // Whole numbers, small enough for their sums to be exact in fp32 whatever the order.
  const float mark = static_cast<float>(dice_.Below(1 << 16));
  const float other = dice_.Percent(5) ? std::numeric_limits<float>::infinity()
                                       : static_cast<float>(dice_.Below(1000));
  push.payload = Fp32Payload({mark, other});
  return push;
}

WorkerId History::DrawWorker() {
  return WorkerId{static_cast<uint32_t>(dice_.Below(rule_.workers))};
}

Incarnation History::DrawIncarnation(WorkerId worker) {
  const Incarnation newest = newest_[worker.value];
  if (dice_.Percent(93)) return newest;
  return Incarnation{dice_.Below(newest.value + 2)};
}

Generation History::DrawGeneration() { return Generation{dice_.Percent(2) ? 1u : 0u}; }

ReadForm History::DrawForm(const Shard& shard) {
  if (dice_.Percent(50)) return dice_.Percent(20) ? CodecId::kBf16 : CodecId::kFp32;
  if (dice_.Percent(20)) return ReadForm::Published();
  return ReadForm::Since(Version{dice_.Below(shard.version().value + 2)});
}

Step History::DrawStep(const Shard& shard, WorkerId worker) {
  const Step next = shard.next(worker);
  if (dice_.Percent(40)) return std::max(next, shard.frontier());
  if (dice_.Percent(40)) return next;
  const uint64_t around = dice_.Percent(50) ? next.value : shard.frontier().value;
  const uint64_t step = around + dice_.Below(6);
  return Step{step < 2 ? 0 : step - 2};
}

}  // namespace thinwire
