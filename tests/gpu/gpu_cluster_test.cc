// A job in which one worker runs on a GPU ends with the same parameters as the same job without a
// GPU.
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/encode/codec_speed.h"
#include "client/gpu/gpu.h"
#include "common/spec/rule.h"
#include "common/time/clock.h"
#include "kernels/cuda/runtime/device.h"
#include "server/core/publish/delta_publisher.h"
#include "tests/gpu/gpu_worker.h"

namespace thinwire {
namespace {

constexpr Step kLast{8};
constexpr CodecSpec kTopK = {.id = CodecId::kTopK, .density = 0.05, .values = CodecId::kFp8E5m2};

struct Mode {
  std::string name;
  CodecSpec push;
  std::optional<PublishOptions> publish;
  double gradient_clip = 0;
  CorrectionOptions correction;
};

ClientOptions OptionsOf(const Mode& mode) {
  ClientOptions options;
  options.worker_count = 2;
  options.push = mode.push;
  if (mode.publish.has_value()) options.pull = std::nullopt;
  options.gradient_clip = mode.gradient_clip;
  options.correction = mode.correction;
  return options;
}

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::cuda::DeviceCount() == 0) GTEST_SKIP() << "this machine has no GPU";
    gpu_ = *OpenGpu(0);
  }

  std::unique_ptr<const Device> gpu_;
};

class GpuClusterTest : public GpuTest, public ::testing::WithParamInterface<Mode> {
 protected:
  // Trains with workers 0 and 1 and returns the masters. If WITH_GPU is true, worker 0 runs on the
  // GPU.
  Tensors Train(bool with_gpu) {
    SmallCluster cluster(Rule::Sync(2, /*ordered_fold=*/true), GetParam().publish);
    const ClientOptions options = OptionsOf(GetParam());
    SmallWorker other(cluster, 1, options);
    std::thread train_other([&] { other.Train(kLast, /*faults=*/false); });
    Tensors parameters;
    if (with_gpu) {
      GpuWorker worker(cluster, 0, options, *gpu_);
      EXPECT_TRUE(worker.Train(worker.Join(), kLast).ok());
      parameters = worker.Parameters();
      EXPECT_EQ(worker.client().counters().differing_replicas(), 0u);
      EXPECT_TRUE(worker.client().Leave().ok());
    } else {
      SmallWorker worker(cluster, 0, options);
      worker.Train(kLast, /*faults=*/false);
      parameters = worker.Parameters();
      EXPECT_TRUE(worker.client().Leave().ok());
    }
    train_other.join();
    EXPECT_EQ(other.Parameters(), parameters) << "replicas differ";
    EXPECT_TRUE(other.client().Leave().ok());
    return cluster.Masters();
  }
};

TEST_P(GpuClusterTest, MastersEqualThoseOfARunWithoutGpu) {
  EXPECT_EQ(Train(/*with_gpu=*/true), Train(/*with_gpu=*/false));
}

class GpuChoiceTest : public GpuTest {
 protected:
  const std::vector<CodecSpec> candidates_ = {
      {.id = CodecId::kFp8E5m2}, {.id = CodecId::kOneBit}, kTopK};
};

TEST_F(GpuChoiceTest, CodecsAreMeasuredOnTheGpu) {
  SteadyClock clock;
  constexpr uint64_t kValues = 70000;
  const auto measure = [&](const Device* device) {
    return *client::MeasureCodecs(candidates_, kValues, ClientOptions(), device, clock);
  };
  const auto on_gpu = measure(gpu_.get()), on_host = measure(nullptr);
  ASSERT_EQ(on_gpu.size(), candidates_.size());
  for (size_t i = 0; i < candidates_.size(); ++i) {
    EXPECT_EQ(on_gpu[i].spec, candidates_[i]);
    EXPECT_EQ(on_gpu[i].bytes, on_host[i].bytes) << "payload sizes differ";
    EXPECT_GT(on_gpu[i].encode_seconds, 0);
  }
}

TEST_F(GpuChoiceTest, WorkerOnAGpuChoosesItsCodecs) {
  SmallCluster cluster(Rule::Sync(2, /*ordered_fold=*/true));
  ClientOptions options;
  options.worker_count = 2;
  options.choose = ChoiceRule::kAuto;
  options.candidates = candidates_;
  SmallWorker other(cluster, 1, options);
  std::thread train_other([&] { other.Train(kLast, /*faults=*/false); });
  GpuWorker worker(cluster, 0, options, *gpu_);
  EXPECT_TRUE(worker.Train(worker.Join(), kLast).ok());
  train_other.join();
  EXPECT_EQ(other.Parameters(), worker.Parameters()) << "replicas differ";
  EXPECT_FALSE(worker.client().choices().empty());
  EXPECT_TRUE(worker.client().Leave().ok());
  EXPECT_TRUE(other.client().Leave().ok());
}

INSTANTIATE_TEST_SUITE_P(
    Modes, GpuClusterTest,
    ::testing::Values(Mode{.name = "Fp32"}, Mode{.name = "Fp8", .push = {.id = CodecId::kFp8E4m3}},
                      Mode{.name = "TopK", .push = kTopK, .correction = {.enabled = true}},
                      Mode{
                          .name = "Clipped", .push = {.id = CodecId::kFp8E5m2}, .gradient_clip = 1},
                      Mode{.name = "Delta", .push = kTopK, .publish = PublishOptions{}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace thinwire
