// How fast the CUDA twins are, each against the bandwidth of a copy on the same device in the same
// run. Times are the device's own, the median of several.
//
//   gb/s gpu.copy 2800                what a copy reads and writes
//   ratio gpu.fp8_e5m2.64mi.encode 0.9   bytes read and written a second over those of a copy of as
//                                     many floats
//   ratio gpu.topk_ef.64mi 0.8        the time of moving 12 bytes a value (read gradient and
//                                     residual, write residual) over that of adding, selecting the
//                                     top 0.1 %, and taking them out of the residual, once the
//                                     residual has settled
//   us gpu.topk_ef.1mi 20             the same in microseconds
//   ratio gpu.push.topk_fp8.64mi 0.7  the time of moving 12 bytes a value and the payload's over
//   that
//                                     of a whole push: error feedback and every byte of a payload
//   us gpu.push.topk_fp8.1mi 30       the same in microseconds
//
// Sizes that the memory of the device does not hold are left out.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/gpu/device_codec.h"
#include "common/codec/table.h"
#include "kernels/cuda/ops/accumulate_momentum.h"
#include "kernels/cuda/ops/codes.h"
#include "kernels/cuda/ops/convert.h"
#include "kernels/cuda/ops/finite.h"
#include "kernels/cuda/ops/reductions.h"
#include "kernels/cuda/ops/scaled_encode.h"
#include "kernels/cuda/ops/sparse.h"
#include "kernels/cuda/ops/top_k.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/stream.h"
#include "kernels/mix_bits.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr size_t kMi = 1 << 20;
constexpr int kSamples = 21;
constexpr int kSettlingSteps = 100;
// A gradient begins at another place of the same array in each step.
constexpr size_t kGradients = 16, kGradientShift = 4096;

void Must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "gpu: %s\n", status.message().c_str());
  std::exit(1);
}

template <typename T>
DeviceBuffer<T> Room(size_t count) {
  DeviceBuffer<T> buffer;
  Must(buffer.Allocate(count));
  return buffer;
}

// Nearly a normal distribution, hardly any two alike.
std::vector<float> Gradient(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = MixBits(i);
    int sum = -2 * 0xFFFF;
    for (int shift = 0; shift < 64; shift += 16) sum += static_cast<int>(bits >> shift & 0xFFFF);
    const float fine = 1 + static_cast<float>(MixBits(bits) & 0xFFFF) * 0x1p-22f;
    values[i] = static_cast<float>(sum) * 0x1p-16f * fine;
  }
  return values;
}

class Bench {
 public:
  Bench() {
    Must(stream_.Open());
    Must(begin_.Open(/*timed=*/true));
    Must(end_.Open(/*timed=*/true));
  }

  const Stream& stream() const { return stream_; }

  // The median time of a RUN.
  double Seconds(const std::function<void()>& run) {
    for (int i = 0; i < 3; ++i) run();
    std::vector<float> samples(kSamples);
    for (float& milliseconds : samples) {
      Must(begin_.Record(stream_));
      run();
      Must(end_.Record(stream_));
      Must(end_.Wait());
      Must(MillisecondsBetween(begin_, end_, milliseconds));
    }
    std::ranges::nth_element(samples, samples.begin() + kSamples / 2);
    return samples[kSamples / 2] * 1e-3;
  }

  // Of a copy of COUNT floats, what is read and what is written.
  void MeasureCopy(size_t count) {
    DeviceBuffer<float> from = Room<float>(count), to = Room<float>(count);
    Must(Clear(std::as_writable_bytes(from.span()), stream_));
    const double seconds = Seconds([&] { Must(CopyOnDevice(from.span(), to.span(), stream_)); });
    bytes_per_second_ = 8.0 * static_cast<double>(count) / seconds;
    std::printf("gb/s gpu.copy %.0f\n", bytes_per_second_ / 1e9);
  }

  // RUN moves BYTES for each of COUNT values.
  void Report(const std::string& name, size_t bytes, size_t count,
              const std::function<void()>& run) {
    std::printf("ratio gpu.%s %.2f\n", name.c_str(), FloorSeconds(bytes, count) / Seconds(run));
  }

  double FloorSeconds(size_t bytes, size_t count) const {
    return static_cast<double>(bytes * count) / bytes_per_second_;
  }

 private:
  Stream stream_;
  Event begin_, end_;
  double bytes_per_second_ = 0;
};

template <typename Format>
void BenchFormat(const std::string& name, size_t n, std::span<const float> gradient,
                 std::span<float> residual, Bench& bench) {
  constexpr size_t kCode = sizeof(typename Format::Code);
  DeviceBuffer<std::byte> codes = Room<std::byte>(n * kCode);
  const auto report = [&](const char* what, size_t bytes, const std::function<void()>& run) {
    bench.Report(name + "." + what, bytes, n, run);
  };
  report("encode", 4 + kCode,
         [&] { Must(Encode<Format>(gradient, 1.0f, codes.data(), bench.stream())); });
  report("encode_feedback", 12 + kCode, [&] {
    Must(EncodeFeedback<Format>(gradient, residual, 1.0f, codes.data(), bench.stream()));
  });
  report("decode", 4 + kCode,
         [&] { Must(Decode<Format>(codes.data(), 1.0f, residual, bench.stream())); });
  report("decode_add", 8 + kCode,
         [&] { Must(DecodeAdd<Format>(codes.data(), 1.0f, 0.5f, residual, bench.stream())); });
}

void BenchPasses(const std::string& size, size_t n, std::span<const float> gradient,
                 std::span<float> residual, Bench& bench) {
  DeviceBuffer<uint8_t> codes = Room<uint8_t>(n);
  DeviceBuffer<float> few = Room<float>(16);
  DeviceBuffer<uint32_t> answer = Room<uint32_t>(1);
  const std::vector<float> table = {0.1f, 0.2f, 0.3f, 0.4f, 0.6f, 0.8f, 1.2f, 1.6f,
                                    0.1f, 0.2f, 0.3f, 0.4f, 0.6f, 0.8f, 1.2f, 1.6f};
  Must(CopyToDevice(table, few.span(), bench.stream()));
  Must(bench.stream().Wait());
  const Stream& stream = bench.stream();
  const auto report = [&](const char* name, size_t bytes, const std::function<void()>& run) {
    bench.Report(name + size, bytes, n, run);
  };
  report("finite", 4, [&] { Must(AllFinite(gradient, answer.data(), stream)); });
  report("int8.codes", 5,
         [&] { Must(CodesOfSteps(gradient, few.span().first<2>(), codes.span(), stream)); });
  report("table_4.codes", 5,
         [&] { Must(CodesOfMagnitudes(gradient, few.span().first(7), 4, codes.span(), stream)); });
  report("table_4.look_up", 5, [&] { Must(LookUp(codes.span(), few.span(), residual, stream)); });
  report("momentum", 12, [&] { Must(AccumulateMomentum(0.9f, gradient, residual, stream)); });
  const ScaledCodes scaled = {few.data(), reinterpret_cast<std::byte*>(answer.data()),
                              reinterpret_cast<std::byte*>(codes.data())};
  report("largest", 4, [&] { Must(LargestMagnitude(gradient, few.data(), stream)); });
  report("fp8_e4m3.scaled", 9, [&] { Must(EncodeScaled(gradient, scaled, stream)); });
}

// Error feedback until it has settled, then measured: RUN with another gradient each time. BYTES
// are what no way of doing it moves less than.
void BenchFeedback(const std::string& name, size_t n, size_t bytes,
                   std::span<const float> gradients, Bench& bench,
                   const std::function<void(std::span<const float>)>& run) {
  size_t step = 0;
  const auto run_next = [&] { run(gradients.subspan(step++ % kGradients * kGradientShift, n)); };
  for (int i = 0; i < kSettlingSteps; ++i) run_next();
  const double seconds = bench.Seconds(run_next);
  std::printf("ratio gpu.%s %.2f\n", name.c_str(), bench.FloorSeconds(1, bytes) / seconds);
  std::printf("us gpu.%s %.1f\n", name.c_str(), seconds * 1e6);
}

DeviceBuffer<float> Zeros(size_t count, const Stream& stream) {
  DeviceBuffer<float> zeros = Room<float>(count);
  Must(Clear(std::as_writable_bytes(zeros.span()), stream));
  return zeros;
}

void BenchTopK(const std::string& size, size_t n, std::span<const float> gradients, Bench& bench) {
  const size_t k = n / 1000;
  const Stream& stream = bench.stream();
  DeviceBuffer<float> residual = Zeros(n, stream), zeros = Zeros(k, stream), top = Room<float>(k);
  DeviceBuffer<uint32_t> indices = Room<uint32_t>(k), collect_from = Room<uint32_t>(1);
  DeviceBuffer<std::byte> workspace = Room<std::byte>(TopKWorkspaceBytes(n, k));
  Must(Clear(std::as_writable_bytes(collect_from.span()), stream));
  BenchFeedback("topk_ef." + size, n, 12 * n, gradients, bench, [&](auto gradient) {
    Must(AddAndSelectTopK(gradient, residual.span(), {indices.span(), top.span()},
                          collect_from.data(), workspace.span(), stream));
    Must(Scatter(indices.span(), zeros.span(), 1.0f, residual.span(), stream));
  });
}

// A whole push of one shard: from its gradient and residual to its payload.
void BenchPush(const std::string& name, const CodecSpec& spec, size_t n,
               std::span<const float> gradients, Bench& bench) {
  const std::unique_ptr<const client::gpu::DeviceCodec> codec =
      *client::gpu::DeviceCodec::Make(spec);
  const Stream& stream = bench.stream();
  DeviceBuffer<float> residual = Zeros(n, stream);
  DeviceBuffer<uint32_t> words = Room<uint32_t>(2);
  Must(Clear(std::as_writable_bytes(words.span()), stream));
  DeviceBuffer<std::byte> workspace = Room<std::byte>(codec->WorkspaceBytes(n));
  // The codes begin at a multiple of 16 bytes.
  const size_t shift = (16 - codec->CodesOffset(n) % 16) % 16;
  const size_t payload_bytes = codec->MaxPayloadBytes(n);
  DeviceBuffer<std::byte> out = Room<std::byte>(shift + payload_bytes);
  BenchFeedback("push." + name, n, 12 * n + payload_bytes, gradients, bench, [&](auto gradient) {
    Must(codec->Encode(gradient, residual.span(), RandomKeys(), &words.data()[0], workspace.span(),
                       out.span().subspan(shift), &words.data()[1], stream));
  });
}

void BenchPushes(const std::string& size, size_t n, std::span<const float> gradients,
                 Bench& bench) {
  const CodecSpec top_k = {.id = CodecId::kTopK, .density = 0.001, .values = CodecId::kFp8E4m3};
  BenchPush("topk_fp8." + size, top_k, n, gradients, bench);
  BenchPush("fp8_e4m3." + size, {.id = CodecId::kFp8E4m3}, n, gradients, bench);
  BenchPush("int8." + size, {.id = CodecId::kInt8}, n, gradients, bench);
  BenchPush("onebit." + size, {.id = CodecId::kOneBit}, n, gradients, bench);
  BenchPush("onebit_512." + size, {.id = CodecId::kOneBit, .onebit_group = 512}, n, gradients,
            bench);
  BenchPush("table_4." + size, *ParseCodec("table_4"), n, gradients, bench);
  BenchPush("qsgd." + size, {.id = CodecId::kQsgd}, n, gradients, bench);
}

void BenchSize(const char* name, size_t n, Bench& bench) {
  const size_t count = n + kGradients * kGradientShift;
  if (DeviceMemoryBytes() / 4 < count * sizeof(float)) {
    std::printf("# %s: want four arrays of %zu MiB on the device\n", name, count * 4 / kMi);
    return;
  }
  DeviceBuffer<float> gradients = Room<float>(count);
  const std::vector<float> drawn = Gradient(count);
  Must(CopyToDevice(drawn, gradients.span(), bench.stream()));
  Must(bench.stream().Wait());
  bench.MeasureCopy(n);
  BenchTopK(name, n, gradients.span(), bench);
  BenchPushes(name, n, gradients.span(), bench);
  DeviceBuffer<float> residual = Room<float>(n);
  Must(Clear(std::as_writable_bytes(residual.span()), bench.stream()));
  const auto gradient = std::span<const float>(gradients.span()).first(n);
  const std::string at = std::string(".") + name;
  BenchFormat<Fp8E5m2>("fp8_e5m2" + at, n, gradient, residual.span(), bench);
  BenchFormat<Fp8E4m3>("fp8_e4m3" + at, n, gradient, residual.span(), bench);
  BenchFormat<Fp16>("fp16" + at, n, gradient, residual.span(), bench);
  BenchFormat<Bf16>("bf16" + at, n, gradient, residual.span(), bench);
  BenchPasses(at, n, gradient, residual.span(), bench);
}

int Main() {
  if (DeviceCount() == 0) {
    std::printf("gpu: this machine has no GPU that CUDA can use, so nothing was measured\n");
    return 0;
  }
  std::printf("# %s\n", DeviceName().c_str());
  Bench bench;
  BenchSize("1mi", kMi, bench);
  BenchSize("64mi", 64 * kMi, bench);
  BenchSize("256mi", 256 * kMi, bench);
  return 0;
}

}  // namespace
}  // namespace thinwire::kernels::cuda

int main() { return thinwire::kernels::cuda::Main(); }
