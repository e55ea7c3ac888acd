// A GPU failure ends the client's waits with a status; nothing crashes or hangs. These tests need
// the emulated GPU, which fails on command.
#include <memory>
#include <string>

#include "client/gpu/gpu.h"
#include "client/testing/in_process_transport.h"
#include "common/spec/rule.h"
#include "common/time/thread_executor.h"
#include "gmock/gmock.h"
#include "kernels/cuda/emulation/runtime.h"
#include "tests/gpu/gpu_worker.h"
#include "tests/clusters/job_server.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class GpuFailureTest : public ::testing::Test {
 protected:
  ~GpuFailureTest() override { kernels::cuda::emulation::BreakAfter(std::nullopt); }

  std::unique_ptr<const Device> gpu_ = *OpenGpu(0);
};

TEST_F(GpuFailureTest, DeviceFailureAtAnyCallEndsTrainingWithAStatus) {
  ClientOptions options;
  options.push = {.id = CodecId::kTopK, .density = 0.05, .values = CodecId::kFp8E5m2};
  options.correction.enabled = true;
  for (uint64_t count = 0; count < 400; count += 1 + count / 3) {
    SmallCluster cluster(Rule::Async(1));
    GpuWorker worker(cluster, 0, options, *gpu_);
    const Step first = worker.Join();
    kernels::cuda::emulation::BreakAfter(count);
    const absl::Status trained = worker.Train(first, Step{1000});
    EXPECT_THAT(trained.message(), HasSubstr("CUDA: ")) << count;
    EXPECT_THAT(trained.message(), HasSubstr("unspecified launch failure")) << count;
    EXPECT_EQ(worker.client().WaitAll(), trained) << "the failure is permanent";
    EXPECT_EQ(worker.client().Leave(), trained);
    kernels::cuda::emulation::BreakAfter(std::nullopt);
  }
}

TEST_F(GpuFailureTest, BrokenDeviceFailsTheJoin) {
  SmallCluster cluster(Rule::Async(1));
  GpuWorker worker(cluster, 0, {}, *gpu_);
  kernels::cuda::emulation::BreakAfter(0);
  const Tensors initial = InitialValues();
  const std::vector<std::span<const float>> spans(initial.begin(), initial.end());
  EXPECT_THAT(worker.client().Join(spans).status().message(),
              HasSubstr("CUDA: copy to the device"));
}

TEST_F(GpuFailureTest, ModelLargerThanDeviceMemoryIsRefused) {
  SmallCluster cluster(Rule::Async(1));
  JobServer servers[] = {JobServer(cluster.job(0)), JobServer(cluster.job(1))};
  InProcessTransport transport({&servers[0], &servers[1]});
  Threads threads;
  const auto client = Client::Make({.server_count = 2}, {{"w", {1 << 20, 1 << 10}}}, transport,
                                   threads, gpu_.get());
  EXPECT_TRUE(absl::IsResourceExhausted(client.status())) << client.status();
  EXPECT_EQ(client.status().message(), "CUDA: allocate device memory: out of memory");
}

TEST_F(GpuFailureTest, MissingGpuIsRefused) {
  const auto none = OpenGpu(7);
  EXPECT_TRUE(absl::IsFailedPrecondition(none.status()));
  EXPECT_EQ(none.status().message(), "cuda:7: no such GPU (expected a number below 1, got 7)");
}

}  // namespace
}  // namespace thinwire
