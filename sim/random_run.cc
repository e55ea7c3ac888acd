#include "sim/random_run.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/codec/codec.h"
#include "common/model/partition.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/testing/random_events.h"
#include "sim/cluster.h"
#include "sim/draws.h"
#include "sim/worker.h"

namespace thinwire::sim {
namespace {

Rule DrawRule(SeededRandom& random, uint64_t mode) {
  const uint32_t workers = 1 + static_cast<uint32_t>(random.Below(4));
  const uint32_t fold_every = 1 + static_cast<uint32_t>(random.Below(4));
  switch (mode) {
    case 0:
      return Rule::Sync(workers, random.Percent(40));
    case 1:
      return Rule::Backup(workers, static_cast<uint32_t>(random.Below(workers)));
    case 2:
      return Rule::Ssp(workers, random.Below(4), fold_every);
    default:
      return Rule::Async(workers, fold_every);
  }
}

CodecSpec DrawPushCodec(SeededRandom& random) {
  switch (random.Below(6)) {
    case 0:
      return {.id = CodecId::kFp32};
    case 1:
      return {.id = CodecId::kBf16};
    case 2:
      return {.id = CodecId::kInt8};
    case 3:
      return {.id = CodecId::kFp8E5m2};
    default:
      return {.id = CodecId::kTopK, .density = 0.125};
  }
}

SparseUpdateSpec DrawSparseUpdates(SeededRandom& random, const Rule& rule) {
  SparseUpdateSpec sparse;
  sparse.lazy_slots = random.Percent(40);
  if (random.Percent(60)) return sparse;
  sparse.selection_density = 0.125;
  if (rule.mode() == "sync" && random.Percent(60)) {
    sparse.unselected_owner = UnselectedOwner::kWorkers;
  }
  return sparse;
}

JobSpec DrawOnce(SeededRandom& random, uint64_t mode, Durability durability) {
  constexpr OptimizerKind kKinds[] = {OptimizerKind::kSgd, OptimizerKind::kMomentum,
                                      OptimizerKind::kAdam};
  JobSpec spec;
  spec.rule = DrawRule(random, mode);
  spec.server_count = 1 + static_cast<uint32_t>(random.Below(3));
  spec.shard_size = kLeastShardSize;
  spec.lease = absl::Seconds(2);
  spec.optimizer.kind = kKinds[random.Below(3)];
  spec.schedule.learning_rate = 0.125;
  spec.push.codec = DrawPushCodec(random);
  spec.publish = DrawPublish(random);
  spec.sparse_updates = DrawSparseUpdates(random, spec.rule);
  if (random.Percent(40)) spec.clip_norm = static_cast<double>(10 + random.Below(20));
  spec.recovery.durability = durability;
  spec.recovery.checkpoint_interval = absl::Milliseconds(300 + random.Below(900));
  return spec;
}

bool SharesTensor(uint64_t seed) {
  return seed >= kFirstTrustSeed && ModeOf(seed) < 2 && DurabilityOf(seed) != Durability::kLog;
}

void UseTrustRatios(SeededRandom& random, JobSpec& spec) {
  spec.optimizer.kind = random.Percent(50) ? OptimizerKind::kLars : OptimizerKind::kLamb;
  spec.sparse_updates.lazy_slots = false;
  spec.clip_norm = 0;
  spec.shard_size = kLargestShardSize / 2;
}

// Gradients are whole numbers, so that sums are exact in any order. Some steps have no examples.
uint32_t DrawGradient(uint64_t seed, const VirtualStep& step,
                      std::vector<std::vector<float>>& gradient) {
  SeededRandom random(seed * 1000003 + step.step.value * 101 + step.worker.value);
  if (random.Percent(5)) return 0;
  for (std::vector<float>& tensor : gradient) {
    for (int i = 0; i < 6; ++i) {
      tensor[random.Below(tensor.size())] += static_cast<float>(1 + random.Below(9));
    }
  }
  return 1 + static_cast<uint32_t>(random.Below(3));
}

VirtualTask DrawTask(SeededRandom& random, uint64_t seed, const JobSpec& spec) {
  VirtualTask task;
  const uint32_t matrix_count = spec.server_count + static_cast<uint32_t>(random.Below(2));
  for (uint32_t i = 0; i < matrix_count; ++i)
    task.tensors.push_back({absl::StrCat("m", i), {4, 6}});
  if (random.Percent(50)) task.tensors.push_back({"b", {10}});
  if (SharesTensor(seed)) task.tensors[0].shape = {513, 512};
  for (TensorShape& tensor : task.tensors) {
    tensor.whole = seed >= kFirstTrustSeed;
    std::vector<float>& values = task.initial.emplace_back(tensor.value_count());
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.5f * static_cast<float>(i % 64);
  }
  task.last = Step{8 + random.Below(16)};
  // All servers may go back to a step before those of workers that have trained.
  task.stays =
      spec.recovery.durability == Durability::kCheckpoint && spec.rule.fold == Fold::kRound;
  task.gradient = [seed](const VirtualStep& step, auto& gradient) {
    return DrawGradient(seed, step, gradient);
  };
  const uint64_t slow = random.Percent(20) ? 3000 : 250;
  task.time = [seed, slow](const VirtualStep& step) {
    SeededRandom time(seed + step.step.value * 977 + step.worker.value * 31);
    return absl::Milliseconds(20 + time.Below(step.worker == WorkerId{0} ? slow : 250));
  };
  return task;
}

// On a slow link, a server decides an answer before it can write it.
ClusterLinks DrawLinks(uint64_t seed) {
  SeededRandom random(seed + 17);
  ClusterLinks links = {.worker = {.latency = absl::Milliseconds(1 + random.Below(20))},
                        .server = {}};
  if (random.Percent(40) && !SharesTensor(seed)) {
    links.worker.bits_per_second = 8 * (3000.0 + static_cast<double>(random.Below(30000)));
    links.buffer_bytes = 1;
  }
  return links;
}

}  // namespace

JobSpec DrawSpec(uint64_t seed) {
  SeededRandom random(seed);
  SeededRandom in_flight(seed + 29);
  for (;;) {
    JobSpec spec = DrawOnce(random, ModeOf(seed), DurabilityOf(seed));
    if (seed >= kFirstTrustSeed) UseTrustRatios(random, spec);
    const uint64_t most = spec.rule.fold == Fold::kPush ? 5 : 1;
    const bool returns = spec.sparse_updates.unselected_owner == UnselectedOwner::kWorkers;
    if (!returns && in_flight.Percent(60)) {
      spec.rule.in_flight = static_cast<uint32_t>(in_flight.Below(most + 1));
    }
    if (spec.Validate().empty()) return spec;
  }
}

RandomRun RunSeed(uint64_t seed, const std::string& state_dir, Mutant mutant, std::ostream* trace) {
  const JobSpec spec = DrawSpec(seed);
  SeededRandom random(~seed);
  const VirtualTask task = DrawTask(random, seed, spec);
  const bool saves = random.Percent(60);
  Cluster cluster(spec, task,
                  {.links = DrawLinks(seed),
                   .seed = seed,
                   .state_dir = saves ? state_dir : "",
                   .mutant = mutant,
                   .trace = trace});
  const bool changes_mode = random.Percent(40);
  Faults faults(cluster, spec, ~seed + 1,
                {.kills_workers = true,
                 .abandons_workers = true,
                 .harms_disks = true,
                 .mode_changes = changes_mode ? 1 + static_cast<uint32_t>(random.Below(2)) : 0,
                 .suspends_processes = SeededRandom(seed + 7).Percent(50)});
  RandomRun run;
  const auto end = [&](const std::string& violation) {
    cluster.ledger().Require(violation.empty(), violation);
    run.violations = cluster.ledger().Close();
    run.counts = cluster.ledger().counts();
    run.faults = faults.counts();
    return run;
  };
  cluster.StartAll();
  const absl::Status injected = faults.Inject(absl::Seconds(2 + random.Below(5)));
  if (!injected.ok()) return end(absl::StrCat("a server cannot start: ", injected.ToString()));
  if (cluster.ledger().violated()) return end("");
  if (spec.recovery.durability == Durability::kNone && SeededRandom(seed + 13).Percent(15)) {
    const absl::Status lost = faults.LoseServer(absl::Minutes(5));
    // The leases of the workers that have failed end.
    cluster.RunFor(spec.lease + absl::Seconds(1));
    return end(lost.ok() ? "" : absl::StrCat(lost.message(), "\n", cluster.DescribeWorkers()));
  }
  const auto stuck = [&](const std::string& what) {
    std::string text = absl::StrCat(what, "\n", cluster.DescribeWorkers());
    for (uint32_t s = 0; s < spec.server_count; ++s) {
      absl::StrAppend(&text, "server ", s, ": ", cluster.failure(ServerId{s}).ToString(), "\n");
    }
    return end(text);
  };
  if (!cluster.RunUntilFinished(absl::Minutes(20))) return stuck("some workers do not finish");
  if (!faults.SettleRule(absl::Minutes(1))) {
    return end("the shards do not follow the rule that the lead has confirmed");
  }
  cluster.LetWorkersLeave();
  if (!cluster.RunUntilFinished(absl::Minutes(5))) return stuck("some workers do not leave");
  // The lease of a worker that has ended for good may still run.
  cluster.RunFor(spec.lease + absl::Seconds(1));
  end("");
  if (!run.violations.empty() || spec.recovery.durability != Durability::kLog) return run;
  // With a log, each server must have the same state when it starts again.
  for (uint32_t s = 0; s < spec.server_count; ++s) {
    cluster.KillServer(ServerId{s}, /*power_loss=*/true);
    const absl::Status started = cluster.StartServer(ServerId{s});
    if (!started.ok()) return end(absl::StrCat("a server cannot start: ", started.ToString()));
  }
  return end("");
}

}  // namespace thinwire::sim
