// TrainingJob trains the shards of a small job in mode sync with two workers, without servers. The
// gradient of a value depends on the value's place in the model, the step and the worker only, so
// jobs that are divided differently get the same updates.
#ifndef THINWIRE_SERVER_DURABLE_TESTING_TRAINING_JOB_H_
#define THINWIRE_SERVER_DURABLE_TESTING_TRAINING_JOB_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/model/partition.h"
#include "server/core/shard.h"
#include "server/core/testing/random_shard.h"
#include "server/durable/checkpoint_format.h"

namespace thinwire {

// Returns a setting with momentum SGD at a constant rate.
RandomShard MomentumSetting();

class TrainingJob {
 public:
  static constexpr uint32_t kWorkers = 2;

  // SETTING has the optimizer, the sparse updates and the publishing of all shards.
  TrainingJob(RandomShard setting, uint32_t server_count, uint64_t shard_size);
  // Continues from SERVERS, the checkpoints of a job with the same SETTING.
  TrainingJob(RandomShard setting, std::span<const Checkpoint> servers);

  // The two workers join, train STEPS steps, and leave.
  void Train(uint64_t steps);
  // Returns the checkpoints of all servers.
  std::vector<Checkpoint> Save();
  // Returns the values of the model, tensor by tensor.
  std::vector<std::vector<float>> Masters() const { return Model(&Shard::masters); }
  std::vector<std::vector<float>> Averages() const { return Model(&Shard::averages); }

 private:
  std::unique_ptr<Shard> MakeShard(ShardId shard) const;
  void ApplyToAll(const Event& event);
  std::vector<std::vector<float>> Model(std::span<const float> (Shard::*values_of)() const) const;

  const RandomShard setting_;
  BeginRecord run_;
  Partition partition_;
  std::vector<std::unique_ptr<Shard>> shards_;  // by shard number
  uint64_t next_ = 0;                           // the next step
  Incarnation incarnation_;                     // of both workers
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_TESTING_TRAINING_JOB_H_
