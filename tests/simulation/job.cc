#include "tests/simulation/job.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/spec/job_spec.h"
#include "common/text/problems.h"
#include "sim/draws.h"

namespace thinwire::simulation {
namespace {

CodecSpec DrawPushCodec(SeededRandom& random) {
  switch (random.Below(5)) {
    case 0:
      return {.id = CodecId::kFp32};
    case 1:
      return {.id = CodecId::kBf16};
    case 2:
      return {.id = CodecId::kInt8};
    default:
      return {.id = CodecId::kTopK, .density = 0.125};
  }
}

SparseUpdateSpec DrawSparseUpdates(SeededRandom& random, const Job& job) {
  SparseUpdateSpec sparse;
  sparse.lazy_slots = random.Percent(40);
  if (random.Percent(60)) return sparse;
  sparse.selection_density = 0.125;
  const bool sync = job.by_round() && job.rule.quorum == job.rule.workers;
  if (sync && random.Percent(60)) sparse.unselected_owner = UnselectedOwner::kWorkers;
  return sparse;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Job& job) {
  return out << job.rule << ", durability " << static_cast<int>(job.durability) << ", push codec "
             << job.push.id << ", " << job.server_count << " servers, " << job.shard_count
             << " shards, " << job.shard.sparse_updates << ", clip_norm " << job.clip_norm
             << ", last step " << job.last;
}

absl::Status Job::CheckMode(const Rule& rule) const {
  Problems problems = ModeProblems(rule, shard.sparse_updates, shard.publish, shard.staleness,
                                   /*grows_batch=*/false, clip_norm);
  if (durability == Durability::kCheckpoint && rule.fold != this->rule.fold) {
    problems.Add("mode", "not possible with durability: checkpoint");
  }
  return problems.ToStatus();
}

void Complete(Job& job) {
  std::vector<TensorShape> tensors;
  for (uint32_t i = 0; i < job.shard_count; ++i) {
    tensors.push_back({absl::StrCat("t", i), {4, kShardValues / 4}});
  }
  job.partition = std::make_shared<const Partition>(
      Partition::Make(tensors, kLeastShardSize, job.server_count).value());
  job.optimizer = MakeOptimizer(job.optimizer_spec).value();
  job.schedule = std::make_shared<const Schedule>(Schedule::Make({.learning_rate = 0.125}).value());
  job.shard.value_count = kShardValues;
  job.shard.rule = job.rule;
  job.shard.clips = job.clip_norm > 0;
}

Job DrawJob(SeededRandom& random, const Rule& rule, Durability durability) {
  constexpr OptimizerKind kKinds[] = {OptimizerKind::kSgd, OptimizerKind::kMomentum,
                                      OptimizerKind::kAdam};
  Job job;
  job.rule = rule;
  job.durability = durability;
  job.server_count = 1 + static_cast<uint32_t>(random.Below(3));
  job.shard_count = job.server_count + static_cast<uint32_t>(random.Below(2));
  job.last = Step{8 + random.Below(16)};
  job.push = DrawPushCodec(random);
  job.optimizer_spec = {.kind = kKinds[random.Below(3)]};
  job.shard.publish = sim::DrawPublish(random);
  job.shard.sparse_updates = DrawSparseUpdates(random, job);
  Complete(job);
  return job;
}

void DrawClipping(SeededRandom& random, Job& job) {
  const bool allowed = job.rule.mode() == "sync" && job.durability != Durability::kLog &&
                       !job.shard.sparse_updates.selection_density.has_value();
  if (!allowed || !random.Percent(40)) return;
  job.clip_norm = static_cast<double>(10 + random.Below(20));
  Complete(job);
}

}  // namespace thinwire::simulation
