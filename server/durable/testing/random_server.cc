#include "server/durable/testing/random_server.h"

#include <algorithm>
#include <string>

namespace thinwire {
namespace {

constexpr size_t kValues = 24;

JoinRequest FirstJoin() {
  JoinRequest join;
  join.set_job("job \"of\" \xC3\xA9tudes");
  join.set_incarnation(1);
  Tensor& tensor = *join.add_tensors();
  tensor.set_name("w");
  tensor.add_shape(4);
  tensor.add_shape(6);
  join.set_shard_size(4096);
  join.set_servers(2);
  join.set_partition_hash(0xFFFFFFFFFFFFFFFF);
  join.set_planned_examples(200);
  join.mutable_config()->mutable_optimization()->set_momentum(0.1);
  return join;
}

}  // namespace

bool operator==(const Checkpoint& a, const Checkpoint& b) {
  const auto equal = [](const SavedShard& x, const SavedShard& y) {
    return x.shard == y.shard && x.applied == y.applied && x.state == y.state;
  };
  return a.server == b.server && a.run.run == b.run.run && a.run.generation == b.run.generation &&
         a.run.join.SerializeAsString() == b.run.join.SerializeAsString() &&
         a.run.token_key == b.run.token_key && a.members == b.members && a.lead == b.lead &&
         a.next == b.next && a.step == b.step && a.test == b.test && std::ranges::equal(a.shards, b.shards, equal);
}

std::ostream& operator<<(std::ostream& out, const Checkpoint& checkpoint) {
  return out << PrintManifest(ManifestOf(checkpoint));
}

RandomServer::RandomServer(uint64_t seed, size_t shard_count) {
  SeededRandom random(seed);
  for (size_t i = 0; i < shard_count; ++i) {
    RandomShard setting = DrawShard(random, kValues);
    auto shard = setting.Make();
    RandomEvents events(setting.options.rule, seed * shard_count + i);
    parts_.push_back({std::move(setting), std::move(shard), std::move(events)});
  }
}

Checkpoint RandomServer::Next(int event_count) {
  Checkpoint checkpoint = {
      .server = ServerId{1},
      .run = {.run = RunId{0x8000000000000001},
              .generation = Generation{1ull << 60},
              .join = FirstJoin(),
              .token_key = std::string("secret\0\xFF", 8)},
      .members = {{WorkerId{0}, Incarnation{3}, Incarnation{2}, true},
                  {WorkerId{2}, Incarnation{1}, Incarnation{0}, false}},
      .deals = {},
      .lead = LeadRecord{.admitted = {Epoch{0}, Epoch{8}}, .target_workers = 2},
      .test = TestResult{.step = Step{9}, .value = 0.25, .is_loss = parts_.size() > 1}};
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    for (int event = 0; event < event_count || !part.shard->CanSave(); ++event) {
      part.shard->Apply(part.setting.NextEvent(part.events, *part.shard));
      ++part.applied;
    }
    checkpoint.shards.push_back({.shard = ShardId{static_cast<uint32_t>(3 * i)},
                                 .applied = part.applied,
                                 .state = part.shard->Save()});
    checkpoint.next = std::max(checkpoint.next, part.applied + 1);
  }
  return checkpoint;
}

}  // namespace thinwire
