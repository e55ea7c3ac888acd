// Tests that a push encoder on a GPU produces the same bytes as a push encoder on the host.
#include "client/gpu/device_shard_encoder.h"

#include <cmath>
#include <deque>
#include <string>

#include "client/encode/push_encoder.h"
#include "client/encode/residual_file.h"
#include "client/gpu/gpu.h"
#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/cuda/runtime/cuda_fixture.h"

namespace thinwire::client::gpu {
namespace {

using Floats = std::vector<float>;

// Each matrix is split into several shards; all vectors share one shard.
const std::vector<TensorShape>& Model() {
  static const std::vector<TensorShape> model = {
      {"w", {100, 80}}, {"b", {80}}, {"v", {60, 90}}, {"c", {60}}};
  return model;
}

// The gradients of one step, once in host memory and once in GPU memory.
class Gradients {
 public:
  Gradients(uint64_t step, const kernels::cuda::Stream& stream) {
    std::mt19937 random(static_cast<uint32_t>(step));
    std::normal_distribution<float> normal;
    for (const TensorShape& t : Model()) {
      Floats& values = values_.emplace_back(t.value_count());
      for (float& v : values) v = normal(random);
    }
    if (step % 4 == 3) values_[step % 8 == 3 ? 0 : 3][17] = step % 8 == 3 ? NAN : INFINITY;
    for (const Floats& values : values_) {
      host_.push_back(values);
      device_.push_back(arrays_.emplace_back(values, stream).span());
    }
  }

  ShardGradient OnHost(const Partition& partition, ShardId shard) const {
    return {.segments = partition.segments(shard), .tensors = host_};
  }
  ShardGradient OnDevice(const Partition& partition, ShardId shard) const {
    return {.segments = partition.segments(shard), .tensors = device_};
  }

 private:
  std::vector<Floats> values_;
  std::deque<kernels::cuda::DeviceArray<float>> arrays_;
  std::vector<std::span<const float>> host_, device_;
};

class DeviceShardEncoderTest : public kernels::cuda::CudaTest {
 protected:
  std::unique_ptr<PushEncoder> OnHost() { return *PushEncoder::Make(partition_, options_); }
  std::unique_ptr<PushEncoder> OnDevice() {
    const auto gpu = *OpenGpu(0);
    return *PushEncoder::Make(partition_, options_, nullptr,
                              *gpu->MakeEncoder(partition_, options_));
  }

  // Encodes a step with the encoder on the GPU and the encoder on the host, expects equal pushes,
  // and reports verdicts. The GPU encoder begins a shard before it finishes the previous one.
  void RunStep(uint64_t step, PushEncoder& host, PushEncoder& device) {
    const Gradients gradients(step, stream_);
    const float factor = step % 3 == 1 ? 0.37f : 1;
    std::deque<PushEncoder::Encoded> want;
    const auto finish = [&] {
      const auto got = device.Finish();
      ASSERT_TRUE(got.ok()) << got.status();
      ASSERT_EQ(got->finite, want.front().finite) << "step " << step;
      ASSERT_EQ(got->push, want.front().push) << "step " << step << " shard " << got->push.shard;
      Judge(got->push, host, device);
      want.pop_front();
    };
    for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
      const PushEntry push{
          .shard = ShardId{s}, .step = Step{step}, .examples = step % 5 == 4 ? 0u : 16u};
      Expect(host.Begin(push, gradients.OnHost(partition_, push.shard), factor));
      want.push_back(*host.Finish());
      if (!device.may_begin()) finish();
      Expect(device.Begin(push, gradients.OnDevice(partition_, push.shard), factor));
    }
    while (device.may_finish()) finish();
  }

  // Reports the verdict of PUSH to the encoder on the GPU and the encoder on the host. Some pushes
  // are late; some accepted pushes have unselected values, which are returned.
  void Judge(const PushEntry& push, PushEncoder& host, PushEncoder& device) {
    const uint64_t draw = push.step.value * 3 + push.shard.value;
    if (draw % 5 == 0) {
      Expect(host.Late(push));
      Expect(device.Late(push));
      return;
    }
    if (draw % 7 != 0 || push.payload.empty()) return;
    const std::vector<uint32_t> taken = {0, 3, 17, 18, 100};
    Expect(host.ReturnUnselected(push, taken));
    Expect(device.ReturnUnselected(push, taken));
  }

  void ExpectSameFeedback(PushEncoder& host, PushEncoder& device) {
    const auto want = *host.residuals();
    const auto got = device.residuals();
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t s = 0; s < want.size(); ++s) {
      EXPECT_EQ((*got)[s].late_examples, want[s].late_examples);
      kernels::cuda::ExpectSameBits(Copy((*got)[s].residual), Copy(want[s].residual));
      kernels::cuda::ExpectSameBits(Copy((*got)[s].momentum), Copy(want[s].momentum));
    }
  }

  // Writes the residuals of ENCODER to a file and reads the file.
  SavedResiduals Saved(PushEncoder& encoder) {
    const ResidualOwner owner = {.job = "train", .worker = WorkerId{1}};
    const std::string path = ::testing::TempDir() + "/residuals";
    Expect(WriteResiduals(path, owner, partition_, {RunId{1}, Step{4}}, *encoder.residuals()));
    return *ReadResiduals(path, owner, partition_);
  }

  static Floats Copy(std::span<const float> values) { return {values.begin(), values.end()}; }
  static void Expect(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

  const Partition partition_ = *Partition::Make(Model(), 4096, 1);
  ClientOptions options_{.planned_steps = 16};
};

class EveryCodecTest : public DeviceShardEncoderTest,
                       public ::testing::WithParamInterface<const char*> {};

TEST_P(EveryCodecTest, PushesAndFeedbackEqualTheHosts) {
  options_.push = *ParseCodec(GetParam());
  options_.push.density = 0.05;
  options_.push.values = CodecId::kFp8E4m3;
  for (const bool keeps_error : {true, false}) {
    options_.error_feedback = keeps_error;
    const auto host = OnHost(), device = OnDevice();
    for (uint64_t step = 0; step < 10; ++step) RunStep(step, *host, *device);
    ExpectSameFeedback(*host, *device);
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, EveryCodecTest,
                         ::testing::Values("fp32", "bf16", "fp8_e5m2", "fp8_e4m3", "table_4",
                                           "onebit", "int8", "topk", "randomk", "powersgd"),
                         [](const auto& test) { return std::string(test.param); });

// Tests deep gradient compression: momentum correction with factor masking, and a warm-up that
// changes the density and the codec.
TEST_F(DeviceShardEncoderTest, MomentumCorrectionAndMaskingEqualTheHosts) {
  options_.push = {.id = CodecId::kTopK, .density = 0.01, .values = CodecId::kFp8E5m2};
  options_.warmup = {
      .density = {.part = 0.6}, .first_part = 0.2, .first = {.id = CodecId::kFp8E5m2}};
  for (const bool nesterov : {false, true}) {
    options_.correction = {.enabled = true, .nesterov = nesterov};
    const auto host = OnHost(), device = OnDevice();
    for (uint64_t step = 0; step < 14; ++step) RunStep(step, *host, *device);
    ExpectSameFeedback(*host, *device);
  }
}

TEST_F(DeviceShardEncoderTest, DecayedResidualsEqualTheHosts) {
  options_.push = {.id = CodecId::kTopK, .density = 0.02};
  options_.residual_decay = 0.75;
  const auto host = OnHost(), device = OnDevice();
  for (uint64_t step = 0; step < 8; ++step) RunStep(step, *host, *device);
  ExpectSameFeedback(*host, *device);
}

TEST_F(DeviceShardEncoderTest, MeasuredErrorsEqualTheHosts) {
  options_.push = {.id = CodecId::kFp8E5m2};
  options_.correction = {.enabled = true, .nesterov = true};
  for (const bool keeps_error : {true, false}) {
    options_.error_feedback = keeps_error;
    const auto host = OnHost(), device = OnDevice();
    RunStep(0, *host, *device);
    host->MeasureErrors(true);
    device->MeasureErrors(true);
    for (uint64_t step = 1; step < 7; ++step) RunStep(step, *host, *device);
    EXPECT_GT(host->error().errors, 0);
    EXPECT_EQ(device->error().errors, host->error().errors);
    EXPECT_EQ(device->error().values, host->error().values);
  }
}

class PowerSgdTest : public DeviceShardEncoderTest,
                     public ::testing::WithParamInterface<CodecId> {};

TEST_P(PowerSgdTest, PushesEqualTheHostsAlsoAfterARestore) {
  options_.push = {.id = CodecId::kPowerSgd, .values = GetParam()};
  for (const bool keeps_error : {true, false}) {
    options_.error_feedback = keeps_error;
    const auto host = OnHost(), device = OnDevice();
    for (uint64_t step = 0; step < 6; ++step) RunStep(step, *host, *device);
    const SavedResiduals saved = Saved(*host);
    for (uint64_t step = 6; step < 9; ++step) RunStep(step, *host, *device);
    Expect(host->Restore(saved));
    Expect(device->Restore(saved));
    for (uint64_t step = 6; step < 12; ++step) RunStep(step, *host, *device);
    ExpectSameFeedback(*host, *device);
  }
}

INSTANTIATE_TEST_SUITE_P(Values, PowerSgdTest,
                         ::testing::Values(CodecId::kFp32, CodecId::kBf16, CodecId::kFp8E4m3,
                                           CodecId::kInt8),
                         [](const auto& test) { return std::string(CodecName(test.param)); });

TEST_F(DeviceShardEncoderTest, EachResumesFromTheOthersResidualFile) {
  options_.push = {.id = CodecId::kTopK, .density = 0.02, .values = CodecId::kFp8E4m3};
  options_.correction = {.enabled = true};
  const auto host = OnHost(), device = OnDevice();
  for (uint64_t step = 0; step < 4; ++step) RunStep(step, *host, *device);
  const auto later_host = OnHost(), later_device = OnDevice();
  Expect(later_device->Restore(Saved(*host)));
  Expect(later_host->Restore(Saved(*device)));
  for (uint64_t step = 4; step < 8; ++step) RunStep(step, *later_host, *later_device);
  ExpectSameFeedback(*later_host, *later_device);
}

TEST_F(DeviceShardEncoderTest, TheSumOfSquaresEqualsTheHostsUpToRounding) {
  const Gradients gradients(1, stream_);
  const auto host = OnHost(), device = OnDevice();
  const ShardId shard{0};
  const uint32_t tensor = partition_.segments(shard)[0].tensor;
  const double want = *host->SumOfSquares(gradients.OnHost(partition_, shard).tensors[tensor]);
  EXPECT_NEAR(*device->SumOfSquares(gradients.OnDevice(partition_, shard).tensors[tensor]), want,
              1e-12 * want);
}

// The payload itself keeps its pinned memory alive.
TEST_F(DeviceShardEncoderTest, APayloadOutlivesItsEncoder) {
  options_.push = {.id = CodecId::kFp8E5m2};
  const Gradients gradients(1, stream_);
  const PushEntry push{.shard = ShardId{0}, .examples = 1};
  const auto host = OnHost();
  Expect(host->Begin(push, gradients.OnHost(partition_, push.shard)));
  auto device = OnDevice();
  Expect(device->Begin(push, gradients.OnDevice(partition_, push.shard)));
  const auto got = device->Finish();
  device.reset();
  EXPECT_EQ(got->push.payload, host->Finish()->push.payload);
}

}  // namespace
}  // namespace thinwire::client::gpu
