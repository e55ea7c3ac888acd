// Measures what it costs to keep residuals in a shared mapping of a file, which survives kill -9 of
// the process, instead of anonymous memory in huge pages. The data is 96 shards of 256 Ki values,
// 25.2 million in all. A pass encodes each shard with error feedback, and each pass gives a shard
// another one of 128 independent gradients: a residual of top-k then has few large values, as in
// training, instead of multiples of one gradient.
//
//   residual FOLDER [SECONDS]     the file is in FOLDER, on the file system to be measured
//
// The passes of the homes and a memcpy of as many floats follow each other in turns for SECONDS
// (120), so that the kernel writes the file's changed pages to the disk meanwhile. For each codec
// the program prints
//
//   fp8_e5m2  memcpy 17.1 ms; huge pages 14.2 = 0.83 memcpy (mean 14.5), mapped 14.6 = 0.85 ...
//
// with the median of the passes, its ratio to that of the memcpy, and the mean. `copied` encodes in
// huge pages and copies the residual to the mapping after each shard.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory_resource>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bench/gradients.h"
#include "common/codec/error_feedback.h"
#include "common/memory/huge_page_arena.h"

namespace thinwire {
namespace {

constexpr size_t kMeasuredShards = 96;
constexpr size_t kBytes = kMeasuredShards * kShardValues * sizeof(float);
using Times = std::vector<double>;

// Returns a shared mapping of BYTES of a new file at PATH, which is removed.
std::byte* MapFile(const std::string& path, size_t bytes) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || posix_fallocate(file, 0, static_cast<off_t>(bytes)) != 0) {
    std::perror(path.c_str());
    std::exit(74);
  }
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) {
    std::perror(path.c_str());
    std::exit(74);
  }
  unlink(path.c_str());
  close(file);
  return static_cast<std::byte*>(mapped);
}

double Milliseconds(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  call();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double Median(Times times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

double Mean(const Times& times) {
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

void Measure(const std::string& name, const CodecSpec& spec, const std::string& folder,
             double seconds) {
  const auto codec = MakeCodec(spec).value();
  const std::vector<Floats> shards = Gradients();
  std::vector<std::byte> payload(codec->MaxPayloadBytes(kShardValues));
  std::byte* const file = MapFile(folder + "/residual-bench", kBytes);
  std::byte* const copies = MapFile(folder + "/residual-bench-copy", kBytes);
  std::vector<float> from(kBytes / sizeof(float), 1), to(kBytes / sizeof(float));
  std::pmr::monotonic_buffer_resource mapping(file, kBytes, std::pmr::null_memory_resource());
  std::vector<ErrorFeedback> huge, mapped, copied;
  for (size_t s = 0; s < kMeasuredShards; ++s) {
    huge.emplace_back(kShardValues, true);
    mapped.emplace_back(kShardValues, true, &mapping);
    copied.emplace_back(kShardValues, true);
  }
  size_t turn = 0;
  const auto encode = [&](ErrorFeedback& feedback, size_t s) {
    feedback.Encode(*codec, shards[(s + turn) % kShards], RandomKeys(), payload);
  };
  const auto pass = [&](std::vector<ErrorFeedback>& feedbacks) {
    for (size_t s = 0; s < kMeasuredShards; ++s) encode(feedbacks[s], s);
  };
  const std::vector<std::pair<std::string, std::function<void()>>> homes = {
      {"memcpy", [&] { std::memcpy(to.data(), from.data(), kBytes); }},
      {"huge pages", [&] { pass(huge); }},
      {"mapped", [&] { pass(mapped); }},
      {"copied",
       [&] {
         for (size_t s = 0; s < kMeasuredShards; ++s) {
           encode(copied[s], s);
           std::memcpy(copies + s * kShardValues * sizeof(float), copied[s].residual().data(),
                       kShardValues * sizeof(float));
         }
       }},
  };
  for (const auto& [home, call] : homes) call();  // allocates the residuals
  std::vector<Times> times(homes.size());
  double elapsed = 0;
  while (elapsed < 1000 * seconds) {
    ++turn;
    for (size_t h = 0; h < homes.size(); ++h) {
      times[h].push_back(Milliseconds(homes[h].second));
      elapsed += times[h].back();
    }
  }
  const double floor = Median(times[0]);
  std::printf("%-9s memcpy %.2f ms", name.c_str(), floor);
  for (size_t h = 1; h < homes.size(); ++h) {
    const double median = Median(times[h]);
    std::printf("%s %s %.2f = %.3f memcpy (mean %.2f)", h == 1 ? ";" : ",", homes[h].first.c_str(),
                median, median / floor, Mean(times[h]));
  }
  std::printf("; %zu passes each\n", times[0].size());
  munmap(file, kBytes);
  munmap(copies, kBytes);
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "residual: wrong command line (expected FOLDER [SECONDS], got none)\n");
    return 64;
  }
  thinwire::HugePageArena arena;
  std::pmr::set_default_resource(&arena);
  const double seconds = argc > 2 ? std::atof(argv[2]) : 120;
  thinwire::Measure("fp8_e5m2", {.id = thinwire::CodecId::kFp8E5m2}, argv[1], seconds);
  thinwire::Measure("topk 1 %", {.id = thinwire::CodecId::kTopK, .density = 0.01}, argv[1],
                    seconds);
  return 0;
}
