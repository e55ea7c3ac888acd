// Measures CUDA kernels in comparison with a device-to-device copy on the same GPU in the same run.
// Times are GPU times, each the median of 21 runs. A ratio of 1 means that a kernel needs no more
// time than a copy that moves as many bytes.
//
//   gb/s gpu.copy 2800
//       bytes read plus bytes written per second by the copy
//   ratio gpu.fp8_e5m2.64mi.encode 0.9
//       time of a copy that moves as many bytes as the kernel / time of the kernel, for 64 Mi
//       values
//   ratio gpu.topk_ef.64mi 0.8
//       time to copy 12 bytes per value (read gradient and residual, write residual) / time to add
//       the gradient to the residual, select the top 0.1 % and remove these values from the
//       residual. Measured after 100 steps of error feedback
//   us gpu.topk_ef.1mi 20
//       time of this selection for 1 Mi values, in microseconds
//   ratio gpu.push.topk_fp8.64mi 0.7
//       time to copy 12 bytes per value and the payload / time of a whole push: the encoding of
//       gradient and residual as a complete payload
//   us gpu.push.topk_fp8.1mi 30
//       time of this push for 1 Mi values, in microseconds
//
// The program skips sizes for which the GPU has too little memory.
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
// The gradients of successive steps are slices of one array. There are kGradients slices; each
// begins kGradientShift values after the previous slice.
constexpr size_t kGradients = 16, kGradientShift = 4096;

void CheckOk(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "gpu: %s\n", status.message().c_str());
  std::exit(1);
}

template <typename T>
DeviceBuffer<T> MakeBuffer(size_t count) {
  DeviceBuffer<T> buffer;
  CheckOk(buffer.Allocate(count));
  return buffer;
}

// Returns approximately normally distributed values, nearly all distinct.
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
    CheckOk(stream_.Open());
    CheckOk(begin_.Open(/*timed=*/true));
    CheckOk(end_.Open(/*timed=*/true));
  }

  const Stream& stream() const { return stream_; }

  // Returns the median GPU time of one call of RUN, in seconds.
  double Seconds(const std::function<void()>& run) {
    for (int i = 0; i < 3; ++i) run();
    std::vector<float> samples(kSamples);
    for (float& milliseconds : samples) {
      CheckOk(begin_.Record(stream_));
      run();
      CheckOk(end_.Record(stream_));
      CheckOk(end_.Wait());
      CheckOk(MillisecondsBetween(begin_, end_, milliseconds));
    }
    std::ranges::nth_element(samples, samples.begin() + kSamples / 2);
    return samples[kSamples / 2] * 1e-3;
  }

  // Measures and prints the bandwidth of a copy of COUNT floats.
  void MeasureCopy(size_t count) {
    DeviceBuffer<float> from = MakeBuffer<float>(count), to = MakeBuffer<float>(count);
    CheckOk(Clear(std::as_writable_bytes(from.span()), stream_));
    const double seconds = Seconds([&] { CheckOk(CopyOnDevice(from.span(), to.span(), stream_)); });
    bytes_per_second_ = 8.0 * static_cast<double>(count) / seconds;
    std::printf("gb/s gpu.copy %.0f\n", bytes_per_second_ / 1e9);
  }

  // Prints the ratio NAME: the time to copy BYTES bytes for each of COUNT values, divided by the
  // GPU time of RUN. RUN moves as many bytes as the copy.
  void Report(const std::string& name, size_t bytes, size_t count,
              const std::function<void()>& run) {
    std::printf("ratio gpu.%s %.2f\n", name.c_str(), CopySeconds(bytes, count) / Seconds(run));
  }

  // Returns the time to copy BYTES bytes for each of COUNT values, in seconds.
  double CopySeconds(size_t bytes, size_t count) const {
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
  DeviceBuffer<std::byte> codes = MakeBuffer<std::byte>(n * kCode);
  const auto report = [&](const char* what, size_t bytes, const std::function<void()>& run) {
    bench.Report(name + "." + what, bytes, n, run);
  };
  report("encode", 4 + kCode,
         [&] { CheckOk(Encode<Format>(gradient, 1.0f, codes.data(), bench.stream())); });
  report("encode_feedback", 12 + kCode, [&] {
    CheckOk(EncodeFeedback<Format>(gradient, residual, 1.0f, codes.data(), bench.stream()));
  });
  report("decode", 4 + kCode,
         [&] { CheckOk(Decode<Format>(codes.data(), 1.0f, residual, bench.stream())); });
  report("decode_add", 8 + kCode,
         [&] { CheckOk(DecodeAdd<Format>(codes.data(), 1.0f, 0.5f, residual, bench.stream())); });
}

void BenchPasses(const std::string& size, size_t n, std::span<const float> gradient,
                 std::span<float> residual, Bench& bench) {
  DeviceBuffer<uint8_t> codes = MakeBuffer<uint8_t>(n);
  DeviceBuffer<float> floats = MakeBuffer<float>(16);
  DeviceBuffer<uint32_t> answer = MakeBuffer<uint32_t>(1);
  const std::vector<float> table = {0.1f, 0.2f, 0.3f, 0.4f, 0.6f, 0.8f, 1.2f, 1.6f,
                                    0.1f, 0.2f, 0.3f, 0.4f, 0.6f, 0.8f, 1.2f, 1.6f};
  CheckOk(CopyToDevice(table, floats.span(), bench.stream()));
  CheckOk(bench.stream().Wait());
  const Stream& stream = bench.stream();
  const auto report = [&](const char* name, size_t bytes, const std::function<void()>& run) {
    bench.Report(name + size, bytes, n, run);
  };
  report("finite", 4, [&] { CheckOk(AllFinite(gradient, answer.data(), stream)); });
  report("int8.codes", 5,
         [&] { CheckOk(CodesOfSteps(gradient, floats.span().first<2>(), codes.span(), stream)); });
  report("table_4.codes", 5, [&] {
    CheckOk(CodesOfMagnitudes(gradient, floats.span().first(7), 4, codes.span(), stream));
  });
  report("table_4.look_up", 5,
         [&] { CheckOk(LookUp(codes.span(), floats.span(), residual, stream)); });
  report("momentum", 12, [&] { CheckOk(AccumulateMomentum(0.9f, gradient, residual, stream)); });
  const ScaledCodes scaled = {floats.data(), reinterpret_cast<std::byte*>(answer.data()),
                              reinterpret_cast<std::byte*>(codes.data())};
  report("largest", 4, [&] { CheckOk(LargestMagnitude(gradient, floats.data(), stream)); });
  report("fp8_e4m3.scaled", 9, [&] { CheckOk(EncodeScaled(gradient, scaled, stream)); });
}

// Calls RUN with successive gradients until the residual is in a steady state, then measures
// further calls. BYTES is a lower bound of the bytes that one call moves.
void BenchFeedback(const std::string& name, size_t n, size_t bytes,
                   std::span<const float> gradients, Bench& bench,
                   const std::function<void(std::span<const float>)>& run) {
  size_t step = 0;
  const auto run_next = [&] { run(gradients.subspan(step++ % kGradients * kGradientShift, n)); };
  for (int i = 0; i < kSettlingSteps; ++i) run_next();
  const double seconds = bench.Seconds(run_next);
  std::printf("ratio gpu.%s %.2f\n", name.c_str(), bench.CopySeconds(1, bytes) / seconds);
  std::printf("us gpu.%s %.1f\n", name.c_str(), seconds * 1e6);
}

DeviceBuffer<float> Zeros(size_t count, const Stream& stream) {
  DeviceBuffer<float> zeros = MakeBuffer<float>(count);
  CheckOk(Clear(std::as_writable_bytes(zeros.span()), stream));
  return zeros;
}

void BenchTopK(const std::string& size, size_t n, std::span<const float> gradients, Bench& bench) {
  const size_t k = n / 1000;
  const Stream& stream = bench.stream();
  DeviceBuffer<float> residual = Zeros(n, stream), zeros = Zeros(k, stream),
                      top = MakeBuffer<float>(k);
  DeviceBuffer<uint32_t> indices = MakeBuffer<uint32_t>(k), threshold = MakeBuffer<uint32_t>(1);
  DeviceBuffer<std::byte> workspace = MakeBuffer<std::byte>(TopKWorkspaceBytes(n, k));
  CheckOk(Clear(std::as_writable_bytes(threshold.span()), stream));
  BenchFeedback("topk_ef." + size, n, 12 * n, gradients, bench, [&](auto gradient) {
    CheckOk(AddAndSelectTopK(gradient, residual.span(), {indices.span(), top.span()},
                             threshold.data(), workspace.span(), stream));
    CheckOk(Scatter(indices.span(), zeros.span(), 1.0f, residual.span(), stream));
  });
}

// Measures a whole push: the encoding of a shard's gradient and residual as a payload.
void BenchPush(const std::string& name, const CodecSpec& spec, size_t n,
               std::span<const float> gradients, Bench& bench) {
  const std::unique_ptr<const client::gpu::DeviceCodec> codec =
      *client::gpu::DeviceCodec::Make(spec);
  const Stream& stream = bench.stream();
  DeviceBuffer<float> residual = Zeros(n, stream);
  DeviceBuffer<uint32_t> words = MakeBuffer<uint32_t>(2);
  CheckOk(Clear(std::as_writable_bytes(words.span()), stream));
  client::gpu::DeviceCodecMemory memory = {.threshold = &words.data()[0]};
  DeviceBuffer<std::byte> workspace =
      MakeBuffer<std::byte>(codec->WorkspaceBytes(n, memory.matrix));
  // The payload begins SHIFT bytes after the start of OUT. SHIFT is chosen so that the payload's
  // codes begin at a multiple of 16 bytes.
  const size_t shift = (16 - codec->CodesOffset(n, memory.matrix) % 16) % 16;
  const size_t payload_bytes = codec->MaxPayloadBytes(n, memory.matrix);
  DeviceBuffer<std::byte> out = MakeBuffer<std::byte>(shift + payload_bytes);
  BenchFeedback("push." + name, n, 12 * n + payload_bytes, gradients, bench, [&](auto gradient) {
    CheckOk(codec->Encode(gradient, residual.span(), RandomKeys(), memory, workspace.span(),
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
  BenchPush("powersgd." + size, {.id = CodecId::kPowerSgd, .values = CodecId::kBf16}, n, gradients,
            bench);
}

void BenchSize(const char* name, size_t n, Bench& bench) {
  const size_t count = n + kGradients * kGradientShift;
  if (DeviceMemoryBytes() / 4 < count * sizeof(float)) {
    std::printf("# %s: skipped: needs four arrays of %zu MiB of GPU memory\n", name,
                count * 4 / kMi);
    return;
  }
  DeviceBuffer<float> gradients = MakeBuffer<float>(count);
  const std::vector<float> drawn = Gradient(count);
  CheckOk(CopyToDevice(drawn, gradients.span(), bench.stream()));
  CheckOk(bench.stream().Wait());
  bench.MeasureCopy(n);
  BenchTopK(name, n, gradients.span(), bench);
  BenchPushes(name, n, gradients.span(), bench);
  DeviceBuffer<float> residual = MakeBuffer<float>(n);
  CheckOk(Clear(std::as_writable_bytes(residual.span()), bench.stream()));
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
    std::printf("gpu: nothing measured: this machine has no GPU that CUDA can use\n");
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
