// Tests that a replica on a GPU and a replica on the host have the same bits.
#include "client/gpu/device_parameters.h"

#include <utility>

#include "client/replica/replica.h"
#include "common/codec/codec.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/model/value_hash.h"
#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/cuda/runtime/cuda_fixture.h"
#include "proto/parameter_service.pb.h"

namespace thinwire::client::gpu {
namespace {

using kernels::cuda::ExpectSameBits;
using Floats = std::vector<float>;

ByteChain Encoded(const CodecSpec& spec, const Floats& values) {
  const auto codec = *MakeCodec(spec);
  std::vector<std::byte> payload(codec->MaxPayloadBytes(values.size()));
  payload.resize(codec->Encode(values, RandomKeys(), payload));
  return ByteChain(std::move(payload));
}

class DeviceParametersTest : public kernels::cuda::CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    device_ = std::make_unique<Replica>(partition_, *DeviceParameters::Make(partition_));
    for (const TensorShape& t : partition_.tensors()) {
      Floats& values = initial_.emplace_back(t.value_count());
      for (float& v : values) v = Gauss();
    }
    const std::vector<std::span<const float>> spans(initial_.begin(), initial_.end());
    ASSERT_TRUE(host_.Fill(spans).ok());
    ASSERT_TRUE(device_->Fill(spans).ok());
  }

  float Gauss() { return std::normal_distribution<float>()(random_); }
  Floats GaussOf(ShardId shard) {
    Floats values(partition_.value_count(shard));
    for (float& v : values) v = Gauss();
    return values;
  }

  Floats OnDevice(uint32_t tensor) {
    const std::span<const float> values = device_->tensor(tensor);
    Floats copy(values.size());
    EXPECT_TRUE(kernels::cuda::CopyToHost(values, std::span(copy), stream_).ok());
    EXPECT_TRUE(stream_.Wait().ok());
    return copy;
  }

  // Returns the values of SHARD that the host replica contains.
  Floats Held(ShardId shard) {
    Floats values;
    for (const Segment& s : partition_.segments(shard)) {
      const auto part = host_.tensor(s.tensor).subspan(s.offset, s.count);
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }

  // Merges ENTRY, as the shard's next version, into the replica on the GPU and the replica on the
  // host. IS_HASHED adds the hash of the resulting values to ENTRY.
  void Merge(ParametersEntry entry, bool is_hashed) {
    entry.base_version = host_.held_version(entry.shard);
    entry.version = entry.base_version + 1;
    if (is_hashed) {
      // Merges ENTRY without a hash into a copy of the host's replica, and computes the hash of the
      // resulting values.
      Replica tried(partition_);
      std::vector<std::span<const float>> spans;
      for (uint32_t t = 0; t < initial_.size(); ++t) spans.push_back(host_.tensor(t));
      ASSERT_TRUE(tried.Fill(spans).ok());
      ASSERT_TRUE(tried
                      .Merge({.shard = entry.shard,
                              .version = entry.base_version,
                              .payload = Encoded({.id = CodecId::kFp32}, Held(entry.shard))})
                      .ok());
      ASSERT_TRUE(tried.Merge(entry).ok());
      Floats values;
      for (const Segment& s : partition_.segments(entry.shard)) {
        const auto part = tried.tensor(s.tensor).subspan(s.offset, s.count);
        values.insert(values.end(), part.begin(), part.end());
      }
      entry.published_hash = HashValues(values);
    }
    const auto want = host_.Merge(entry), got = device_->Merge(entry);
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(*want, Replica::Merged::kDone);
    ASSERT_EQ(*got, *want);
    EXPECT_EQ(device_->held_version(entry.shard), entry.version);
  }

  void ExpectSame() {
    for (uint32_t t = 0; t < initial_.size(); ++t) {
      const std::span<const float> want = host_.tensor(t);
      ExpectSameBits(OnDevice(t), {want.begin(), want.end()});
    }
  }

  // Returns a ULP delta that changes about one of every NTH values of SHARD.
  ByteChain Moves(ShardId shard, uint32_t nth) {
    const Floats from = Held(shard);
    Floats to = from;
    std::vector<uint32_t> indices;
    for (uint32_t i = 0; i < to.size(); ++i) {
      if (random_() % nth != 0) continue;
      to[i] = from[i] * 1.001f + 1e-6f;
      if (std::bit_cast<uint32_t>(to[i]) != std::bit_cast<uint32_t>(from[i])) indices.push_back(i);
    }
    return EncodeUlpDelta(from, to, indices);
  }

  // Each matrix is split into several shards; all vectors share one shard.
  const Partition partition_ =
      *Partition::Make({{"w", {70, 80}}, {"a", {33}}, {"v", {10, 20}}, {"b", {5}}}, 4096, 1);
  std::mt19937 random_{5};
  std::vector<Floats> initial_;
  Replica host_{partition_};
  std::unique_ptr<Replica> device_;
};

TEST_F(DeviceParametersTest, HoldsAndSeedsItsInitialValues) {
  ExpectSame();
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    EXPECT_EQ(device_->SeedPayload(ShardId{s}), host_.SeedPayload(ShardId{s}));
  }
  for (uint32_t t = 0; t < initial_.size(); ++t) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(device_->tensor(t).data()) % 256, 0u);
  }
}

// After a server has changed one shard, other shards may still need their initial values.
TEST_F(DeviceParametersTest, SeedsAShardAfterAnotherHasChanged) {
  const ShardId other{1};
  const ByteChain want = host_.SeedPayload(other);
  Merge({.shard = ShardId{0}, .payload = Encoded({.id = CodecId::kFp32}, GaussOf(ShardId{0}))},
        false);
  EXPECT_EQ(device_->SeedPayload(other), want);
}

TEST_F(DeviceParametersTest, AppliesFullParametersInEveryCodec) {
  bool is_hashed = false;
  for (const std::string_view name : ParameterCodecNames()) {
    SCOPED_TRACE(std::string(name));
    for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
      is_hashed = !is_hashed;
      Merge({.shard = ShardId{s}, .payload = Encoded(*ParseCodec(name), GaussOf(ShardId{s}))},
            is_hashed);
    }
    ExpectSame();
  }
}

// A worker that is several versions behind receives a chain of deltas: encoded differences in
// several codecs, and ULP deltas.
TEST_F(DeviceParametersTest, AppliesChainsOfDeltas) {
  std::vector<CodecSpec> specs;
  for (const char* name : {"fp8_e5m2", "int8", "fp32", "topk", "fp8_e4m3"}) {
    specs.push_back(*ParseCodec(name));
    specs.back().density = 0.03;
    specs.back().values = CodecId::kFp16;
  }
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    const ShardId shard{s};
    Merge({.shard = shard, .payload = Encoded({.id = CodecId::kFp32}, GaussOf(shard))}, true);
    for (int round = 0; round < 3; ++round) {
      for (const CodecSpec& spec : specs) {
        Merge({.shard = shard, .kind = Parameters::ADD, .payload = Encoded(spec, GaussOf(shard))},
              round == 1);
        const uint32_t nth = round == 0 ? 1 : 50;
        Merge({.shard = shard, .kind = Parameters::MOVE, .payload = Moves(shard, nth)}, round != 1);
      }
    }
    ExpectSame();
  }
}

TEST_F(DeviceParametersTest, AShardWithAWrongHashIsNoLongerHeld) {
  const ShardId shard{0};
  Merge({.shard = shard, .payload = Encoded({.id = CodecId::kFp32}, GaussOf(shard))}, false);
  ParametersEntry entry = {.shard = shard,
                           .version = device_->held_version(shard) + 1,
                           .base_version = device_->held_version(shard),
                           .kind = Parameters::ADD,
                           .published_hash = 77,
                           .payload = Encoded({.id = CodecId::kBf16}, GaussOf(shard))};
  EXPECT_EQ(*device_->Merge(entry), Replica::Merged::kDiffers);
  EXPECT_FALSE(device_->holds(shard));
  entry.kind = Parameters::FULL;
  EXPECT_TRUE(absl::IsDataLoss(device_->Merge(entry).status()));
}

}  // namespace
}  // namespace thinwire::client::gpu
