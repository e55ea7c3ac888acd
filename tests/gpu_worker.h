// GpuWorker: a SmallWorker whose client has a GPU, and whose gradients are made there. Only tests
// use it. Not thread-safe; the GPU outlives it.
#ifndef THINWIRE_TESTS_GPU_WORKER_H_
#define THINWIRE_TESTS_GPU_WORKER_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/client.h"
#include "client/encode/gradient.h"
#include "gtest/gtest.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/stream.h"
#include "tests/small_cluster.h"

namespace thinwire {

class GpuWorker {
 public:
  GpuWorker(SmallCluster& cluster, uint32_t number, ClientOptions options, const Device& gpu)
      : number_(number), worker_(cluster, number, std::move(options), &gpu) {
    EXPECT_TRUE(stream_.Open().ok());
  }

  Client& client() { return worker_.client(); }

  Step Join() { return worker_.Join(); }
  // From STEP, where it joined, up to LAST or the first error.
  absl::Status Train(Step step, Step last) {
    while (step < last) {
      client().BeginStep(step, kExamples);
      if (absl::Status s = client().WaitAll(); !s.ok()) return s;
      const Tensors gradients = Gradient(number_, step.value);
      for (uint32_t t = gradients.size(); t-- > 0;) {
        client().Ready(t, Launch(gradients[t]));
      }
      if (absl::Status s = client().EndStep(); !s.ok()) return s;
      const absl::StatusOr<Step> next = client().NextStep();
      if (!next.ok()) return next.status();
      step = *next;
    }
    return client().WaitAll();
  }

  // The replica, copied back. REQUIRES: Train returned.
  Tensors Parameters() {
    Tensors parameters;
    for (uint32_t t = 0; t < client().partition().tensors().size(); ++t) {
      const std::span<const float> values = client().replica(t);
      std::vector<float>& copy = parameters.emplace_back(values.size());
      EXPECT_TRUE(kernels::cuda::CopyToHost(values, std::span(copy), stream_).ok());
    }
    EXPECT_TRUE(stream_.Wait().ok());
    return parameters;
  }

 private:
  struct Made {
    std::vector<float> on_host;
    kernels::cuda::DeviceBuffer<float> values;
    kernels::cuda::Event written;
  };

  // What backward does: the values are on their way when it returns.
  TensorGradient Launch(const std::vector<float>& values) {
    const auto made = std::make_shared<Made>();
    made->on_host = values;
    EXPECT_TRUE(made->values.Allocate(values.size()).ok());
    EXPECT_TRUE(made->written.Open().ok());
    // Of a device that is broken the wait tells.
    (void)kernels::cuda::CopyToDevice(made->on_host, made->values.span(), stream_);
    (void)made->written.Record(stream_);
    return {.values = made->values.span(), .owner = made, .wait = [made] {
              const kernels::cuda::Status status = made->written.Wait();
              if (status.ok()) return absl::OkStatus();
              return absl::InternalError("CUDA: " + status.message());
            }};
  }

  const uint32_t number_;
  kernels::cuda::Stream stream_;
  SmallWorker worker_;
};

}  // namespace thinwire

#endif  // THINWIRE_TESTS_GPU_WORKER_H_
