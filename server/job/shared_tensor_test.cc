// Tests the trust ratio of tensors that the shards of several servers share, in one process.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/model/partition.h"
#include "common/spec/job_spec.h"
#include "gtest/gtest.h"
#include "server/job/testing/job_servers.h"

namespace thinwire {
namespace {

// One tensor of more values than a shard has, which lamb updates.
class SharedTensorTest : public JobServersTest {
 protected:
  static JobSpec SpecOf(uint32_t servers, const Rule& rule) {
    JobSpec spec;
    spec.rule = rule;
    spec.server_count = servers;
    spec.schedule.learning_rate = 0.1;
    spec.optimizer = {.kind = OptimizerKind::kLamb, .weight_decay = 0.01};
    return spec;
  }
  static std::vector<TensorShape> Large() {
    return {{.name = "w", .shape = {513, 512}, .whole = true},
            {.name = "b", .shape = {3}, .whole = true},
            {.name = "v", .shape = {262145}, .whole = true}};
  }
  // Returns value I of a tensor in draw SEED, from -1 to 1.
  static float ValueOf(uint32_t tensor, uint64_t i, uint32_t seed) {
    const uint64_t mixed = (i + 1) * 2654435761 + tensor * 40503 + seed * 69069;
    return static_cast<float>(mixed % 2001) / 1000 - 1;
  }
  ByteChain Drawn(ShardId shard, uint32_t seed) const {
    std::vector<float> values;
    for (const Segment& segment : partition_.segments(shard)) {
      for (uint64_t i = 0; i < segment.count; ++i) {
        values.push_back(ValueOf(segment.tensor, segment.offset + i, seed));
      }
    }
    return Payload(values);
  }
  // Returns the parameters of all servers, by tensor.
  std::map<std::string, std::vector<float>> Parameters() {
    std::map<std::string, std::vector<float>> tensors;
    for (const TensorShape& tensor : partition_.tensors()) {
      tensors[tensor.name].resize(tensor.value_count());
    }
    for (uint32_t s = 0; s < jobs_.size(); ++s) {
      for (size_t i = 0; i < partition_.ShardsOf(ServerId{s}).size(); ++i) {
        Pending<std::vector<MastersChunk>> pending;
        jobs_[s]->Masters({}, i, pending.done());
        const std::vector<MastersChunk> chunks = pending.Get().value();
        for (const MastersChunk& chunk : chunks) {
          std::memcpy(tensors[chunk.tensor()].data() + chunk.offset(), chunk.values().data(),
                      chunk.values().size());
        }
      }
    }
    return tensors;
  }
  // Trains STEPS steps of two workers, whose gradients depend on the worker and the step.
  void Train(uint64_t steps) {
    Begin([this](ShardId shard) { return Drawn(shard, 0); });
    for (uint64_t step = 0; step < steps; ++step) {
      for (uint32_t w = 0; w < streams_.size(); ++w) {
        for (uint32_t s = 0; s < jobs_.size(); ++s) {
          PushValues(w, s, step, [&](ShardId shard) { return Drawn(shard, SeedOf(w, step)); });
        }
      }
      for (uint32_t w = 0; w < streams_.size(); ++w) AwaitParameters(w, step + 1);
    }
  }
  static uint32_t SeedOf(uint32_t worker, uint64_t step) {
    return 1 + worker + 2 * static_cast<uint32_t>(step);
  }
  // Expects the parameters of one optimizer on whole tensors, in double, after STEPS steps with the
  // gradients of WORKERS workers.
  void ExpectLamb(uint64_t steps, uint32_t workers = 2) {
    const auto trained = Parameters();
    for (uint32_t t = 0; t < partition_.tensors().size(); ++t) {
      const TensorShape& tensor = partition_.tensors()[t];
      const size_t count = tensor.value_count();
      std::vector<double> x(count), p(count), q(count), r(count);
      for (size_t i = 0; i < count; ++i) x[i] = ValueOf(t, i, 0);
      for (uint64_t step = 0; step < steps; ++step) {
        double norm = 0, direction = 0;
        for (size_t i = 0; i < count; ++i) {
          double g = 0;
          for (uint32_t w = 0; w < workers; ++w) g += ValueOf(t, i, SeedOf(w, step));
          g /= workers;
          p[i] = 0.9 * p[i] + 0.1 * g;
          q[i] = 0.999 * q[i] + 0.001 * g * g;
          const double mean = p[i] / (1 - std::pow(0.9, step + 1));
          const double root = std::sqrt(q[i] / (1 - std::pow(0.999, step + 1)));
          r[i] = mean / (root + 1e-8) + 0.01 * x[i];
          norm += x[i] * x[i];
          direction += r[i] * r[i];
        }
        for (size_t i = 0; i < count; ++i) x[i] -= 0.1 * std::sqrt(norm / direction) * r[i];
      }
      for (size_t i = 0; i < count; ++i) {
        ASSERT_NEAR(trained.at(tensor.name)[i], x[i], 1e-6)
            << tensor.name << " " << i;
      }
    }
  }
};

TEST_F(SharedTensorTest, TheRatioIsThatOfTheWholeTensor) {
  StartServers(SpecOf(/*servers=*/2, Rule::Sync(2)), Large(), 100000);
  for (uint32_t s = 0; s < 2; ++s) {
    for (const uint32_t tensor : {0u, 2u}) {
      EXPECT_GT(std::ranges::count_if(
                    partition_.ShardsOfTensor(tensor),
                    [&](ShardId shard) { return partition_.server(shard) == ServerId{s}; }),
                0);
    }
  }
  Train(3);
  ExpectLamb(3);
}

TEST_F(SharedTensorTest, OneServerAddsItsShardsAlone) {
  StartServers(SpecOf(1, Rule::Sync(2)), Large());
  Train(2);
  ExpectLamb(2);
}

// With more servers than shards, some take no part in the sums.
TEST_F(SharedTensorTest, AServerWithoutAPartTakesNoPart) {
  StartServers(SpecOf(4, Rule::Sync(2)),
               {{.name = "b", .shape = {3}, .whole = true},
                {.name = "w", .shape = {513, 512}, .whole = true}},
               kLargestShardSize);
  Train(2);
  ExpectLamb(2);
}

// A round is closed by a quorum; the sums are those of the gradients that each shard has.
TEST_F(SharedTensorTest, ARoundOfBackupIsSummedToo) {
  StartServers(SpecOf(2, Rule::Backup(2, 1)), Large());
  Begin([this](ShardId shard) { return Drawn(shard, 0); });
  PushValues(0, 1, 0, [this](ShardId shard) { return Drawn(shard, 1); });
  EXPECT_EQ(Status(1).shards(0).version(), 0u) << "server 0 has no gradient";
  PushValues(0, 0, 0, [this](ShardId shard) { return Drawn(shard, 1); });
  AwaitParameters(0, 1);
  ExpectLamb(1, /*workers=*/1);
}

TEST_F(SharedTensorTest, ModesWithoutRoundsAreRefused) {
  StartServers(SpecOf(2, Rule::Async(1)), Large());
  const absl::Status joined = Join(0, 0);
  EXPECT_EQ(joined.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      joined.message(),
      "tensor \"w\": has 262656 values; with optimizer lars or lamb, more than 262144 are only "
      "valid with mode: sync or backup (got mode: async)");
}

TEST_F(SharedTensorTest, AChangeToAModeWithoutRoundsIsRefused) {
  StartServers(SpecOf(2, Rule::Sync(1)), Large());
  Begin([this](ShardId shard) { return Drawn(shard, 0); });
  SetModeRequest request;
  request.mutable_consistency()->set_mode(Consistency::Mode::ssp);
  Pending<SetModeReply> pending;
  jobs_[0]->Call(request, pending.done());
  EXPECT_EQ(
      pending.Get().status().message(),
      "tensor \"w\": has 262656 values; with optimizer lars or lamb, more than 262144 are only "
      "valid with mode: sync or backup (got mode: ssp)");
}

TEST_F(SharedTensorTest, IncompleteSumsAreRefused) {
  StartServers(SpecOf(2, Rule::Sync(1)), Large());
  Begin([this](ShardId shard) { return Drawn(shard, 0); });
  PushValues(0, 1, 0, [this](ShardId shard) { return Drawn(shard, 1); });
  ASSERT_TRUE(Sum(1, RequestOf()).ok()) << "all shards are full";
  SumRequest request = RequestOf();
  request.set_step(0);
  EXPECT_EQ(Sum(1, request).message(), "sums: incomplete (expected the sum of number 0)");
}

}  // namespace
}  // namespace thinwire
