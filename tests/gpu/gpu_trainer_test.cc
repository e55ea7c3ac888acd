// A LibTorch model whose parameters and gradients are in GPU memory trains to the same parameters
// as on the host. The tests use the emulated GPU: its memory is host memory, which LibTorch's CPU
// operators read and write directly.
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "client/client.h"
#include "client/gpu/gpu.h"
#include "client/testing/in_process_transport.h"
#include "common/spec/rule.h"
#include "common/time/clock.h"
#include "common/time/thread_executor.h"
#include "gtest/gtest.h"
#include "tests/clusters/job_server.h"
#include "tests/clusters/small_cluster.h"
#include "worker/batches/batch_buffer.h"
#include "worker/batches/sampler.h"
#include "worker/models/factory.h"
#include "worker/trainer/events.h"
#include "worker/trainer/trainer.h"

namespace thinwire {
namespace {

constexpr uint32_t kClasses = 3;

// Returns COUNT examples of 12 values. The label of an example determines which four values are
// large.
Dataset Bright(uint32_t count) {
  Dataset dataset = {.example_shape = {12}, .class_count = kClasses};
  std::vector<float> values;
  for (uint32_t i = 0; i < count; ++i) {
    dataset.labels.push_back(i % kClasses);
    for (uint32_t k = 0; k < 12; ++k) {
      const float dim = static_cast<float>((i * 7 + k * 5) % 11) / 16;
      values.push_back(k / 4 == i % kClasses ? 1 + dim : dim);
    }
  }
  dataset.values = std::move(values);
  return dataset;
}

// Trains on DEVICE, or on the host if DEVICE is null. Returns the final replica and the worker's
// events.
std::pair<Tensors, std::string> Train(const Device* device) {
  SmallCluster cluster(Rule::Sync(1));
  JobServer servers[] = {JobServer(cluster.job(0)), JobServer(cluster.job(1))};
  InProcessTransport transport({&servers[0], &servers[1]});
  const Dataset examples = Bright(64);
  const TaskSpec task = {.model = ModelKind::kMlp, .device = "cpu"};
  const auto model = *MakeModel(task, FormOf(examples));
  ClientOptions options = {
      .server_count = 2,
      .push = {.id = CodecId::kTopK, .density = 0.1, .values = CodecId::kFp8E5m2}};
  options.correction.enabled = true;
  Threads threads;
  const auto client =
      *Client::Make(std::move(options), model->tensors(), transport, threads, device);
  Sampler sampler({.example_count = 64, .workers = 1, .batch_size = 16});
  std::ostringstream output;
  EventPrinter events(output, WorkerId{0});
  SteadyClock clock;
  Trainer trainer({.epochs = 3, .device = "a device"},
                  {.client = *client,
                   .model = *model,
                   .train = examples,
                   .test = examples,
                   .sampler = sampler,
                   .events = events,
                   .clock = clock,
                   .stop = [](absl::Duration) { return false; }});
  const auto ending = trainer.Run();
  EXPECT_TRUE(ending.ok()) << ending.status();
  Tensors replica;
  for (uint32_t t = 0; t < model->tensors().size(); ++t) {
    replica.emplace_back(client->replica(t).begin(), client->replica(t).end());
  }
  return {replica, output.str()};
}

TEST(GpuTrainerTest, TrainsToTheSameParametersAsOnTheHost) {
  const auto gpu = *OpenGpu(0);
  const auto [on_gpu, gpu_events] = Train(gpu.get());
  const auto [on_host, host_events] = Train(nullptr);
  EXPECT_EQ(on_gpu, on_host);
  EXPECT_NE(gpu_events.find("\"device\":\"a device\""), std::string::npos) << gpu_events;
  EXPECT_NE(gpu_events.find("\"final_test_accuracy\":1,"), std::string::npos) << gpu_events;
}

}  // namespace
}  // namespace thinwire
