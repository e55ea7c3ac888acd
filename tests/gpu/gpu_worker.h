// GpuWorker is a SmallWorker whose parameters and gradients are in GPU memory. Not thread-safe. The
// GPU must outlive this object.
#ifndef THINWIRE_TESTS_GPU_GPU_WORKER_H_
#define THINWIRE_TESTS_GPU_GPU_WORKER_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/client.h"
#include "client/encode/gradient.h"
#include "common/base/status_macros.h"
#include "gtest/gtest.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/stream.h"
#include "tests/clusters/small_cluster.h"

namespace thinwire {

class GpuWorker {
 public:
  GpuWorker(SmallCluster& cluster, uint32_t number, ClientOptions options, const Device& gpu)
      : number_(number), worker_(cluster, number, std::move(options), &gpu) {
    EXPECT_TRUE(stream_.Open().ok());
  }

  Client& client() { return worker_.client(); }

  Step Join() { return worker_.Join(); }
  // Trains from STEP until the next step is LAST or later. Returns early with the first error.
  absl::Status Train(Step step, Step last) {
    while (step < last) {
      client().BeginStep(step, kExamples);
      RETURN_IF_ERROR(client().WaitAll());
      const Tensors gradients = Gradient(number_, step.value);
      for (uint32_t t = gradients.size(); t-- > 0;) {
        client().Ready(t, Launch(gradients[t]));
      }
      RETURN_IF_ERROR(client().EndStep());
      ASSIGN_OR_RETURN(step, client().NextStep());
    }
    return client().WaitAll();
  }

  // Returns a host copy of the replica. REQUIRES: Train has returned.
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
  struct GpuTensor {
    std::vector<float> on_host;
    kernels::cuda::DeviceBuffer<float> values;
    kernels::cuda::Event written;
  };

  // Starts a copy of VALUES to the GPU and returns before the copy is complete, like a backward
  // pass.
  TensorGradient Launch(const std::vector<float>& values) {
    const auto made = std::make_shared<GpuTensor>();
    made->on_host = values;
    EXPECT_TRUE(made->values.Allocate(values.size()).ok());
    EXPECT_TRUE(made->written.Open().ok());
    // Errors of CopyToDevice and Record are ignored, because the function `wait` of the returned
    // TensorGradient reports the errors of a broken GPU.
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

#endif  // THINWIRE_TESTS_GPU_GPU_WORKER_H_
