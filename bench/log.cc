// Compares the event log with the lowest cost of durable bytes: a loop that writes as many bytes to
// a file with one call of write and flushes them with fdatasync.
//
//   log DIRECTORY [google-benchmark flags]
//
// DIRECTORY must be on the disk to measure. Each benchmark measures commits of a fixed number of
// records. The last DONE of a commit appends the records of the next commit, so that the log flushes
// exactly this number of records at once. The loop begins a new file as often as the log begins a
// segment. The time of a commit begins before its first Append or write, and ends with its last DONE
// or the end of fdatasync. The log and the loop alternate, because the speed of a disk varies.
//
// Below google-benchmark's table, the program prints one line per benchmark: `ratio log.64KiB.16
// 1.05` is the median time of the log's commits of 16 records of 64 KiB, divided by the median time
// of the loop.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/byte_chain.h"
#include "server/durable/event_log.h"
#include "server/durable/files.h"

namespace thinwire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;
constexpr uint64_t kSegmentBytes = 64 << 20;

struct Setting {
  size_t record_bytes;
  int record_count;  // per commit
  int commit_count;  // per round

  size_t commit_bytes() const { return record_bytes * record_count; }
  std::string Name() const {
    const size_t kib = record_bytes >> 10;
    const std::string size = kib < 1024 ? absl::StrCat(kib, "KiB") : absl::StrCat(kib >> 10, "MiB");
    return absl::StrCat("log.", size, ".", record_count);
  }
};

constexpr Setting kSettings[] = {{1 << 10, 1, 100},  {1 << 10, 64, 100}, {64 << 10, 1, 100},
                                 {64 << 10, 16, 50}, {1 << 20, 1, 50},   {1 << 20, 8, 20}};

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::shared_ptr<const std::vector<std::byte>> SomeBytes(size_t size) {
  std::vector<std::byte> bytes(size);
  uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

// Measures the commits of an event log.
class LogCommits {
 public:
  LogCommits(const std::string& folder, const Setting& setting)
      : setting_(setting), bytes_(SomeBytes(setting.record_bytes)) {
    auto log = EventLog::Open(files_, {.folder = folder, .segment_bytes = kSegmentBytes}, 1,
                              [](const absl::Status& status) { LOG(FATAL) << status; });
    CHECK(log.ok()) << log.status();
    log_ = *std::move(log);
  }

  // Returns the seconds of each commit. Call once.
  std::vector<double> Run() {
    log_->Append(Record(), [this](LogSequence) { AppendCommit(); });
    finished_.WaitForNotification();
    return seconds_;
  }

 private:
  void AppendCommit() {
    if (static_cast<int>(seconds_.size()) == setting_.commit_count) return finished_.Notify();
    begin_ = Clock::now();
    for (int i = 1; i < setting_.record_count; ++i) log_->Append(Record(), [](LogSequence) {});
    log_->Append(Record(), [this](LogSequence) {
      seconds_.push_back(SecondsSince(begin_));
      AppendCommit();
    });
  }

  ByteChain Record() const { return ByteChain(*bytes_, bytes_); }

  const Setting setting_;
  const std::shared_ptr<const std::vector<std::byte>> bytes_;
  PosixFiles files_;
  Clock::time_point begin_;
  std::vector<double> seconds_;
  absl::Notification finished_;
  std::unique_ptr<EventLog> log_;  // its destructor ends the thread that uses the other members
};

// Returns the seconds of each write and flush of as many bytes as a commit of the log has.
std::vector<double> FloorSeconds(const std::string& folder, const Setting& setting) {
  const auto bytes = SomeBytes(setting.commit_bytes());
  std::vector<double> seconds;
  int file = -1;
  uint64_t file_bytes = kSegmentBytes;
  for (int i = 0; i < setting.commit_count; ++i) {
    if (file_bytes >= kSegmentBytes) {
      if (file >= 0) close(file);
      file = open(absl::StrCat(folder, "/floor", i).c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
      PCHECK(file >= 0 && fsync(file) == 0) << folder;
      file_bytes = 0;
    }
    const auto begin = Clock::now();
    for (size_t written = 0; written < bytes->size();) {
      const ssize_t part = write(file, bytes->data() + written, bytes->size() - written);
      PCHECK(part >= 0) << folder;
      written += static_cast<size_t>(part);
    }
    PCHECK(fdatasync(file) == 0) << folder;
    seconds.push_back(SecondsSince(begin));
    file_bytes += bytes->size();
  }
  close(file);
  return seconds;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The seconds of all commits by the name of the benchmark.
using Seconds = std::map<std::string, std::vector<double>>;

// Runs MEASURE with a new folder, and reports its result as the times of the iterations of STATE.
template <typename Measure>
void Report(benchmark::State& state, const std::string& directory, const Setting& setting,
            std::vector<double>& all_seconds, const Measure& measure) {
  const std::string folder = directory + "/thinwire_bench_log";
  std::filesystem::create_directory(folder);
  const std::vector<double> seconds = measure(folder, setting);
  std::filesystem::remove_all(folder);
  all_seconds.insert(all_seconds.end(), seconds.begin(), seconds.end());
  auto next = seconds.begin();
  for (auto _ : state) state.SetIterationTime(*next++);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * setting.commit_bytes()));
}

void Run(const std::string& directory) {
  Seconds seconds;
  for (int round = 0; round < kRounds; ++round) {
    for (const Setting& setting : kSettings) {
      const auto add = [&](const std::string& name, auto measure) {
        const auto report = [&, name, measure, setting](benchmark::State& state) {
          Report(state, directory, setting, seconds[name], measure);
        };
        benchmark::RegisterBenchmark(name.c_str(), report)
            ->Iterations(setting.commit_count)
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
      };
      add(setting.Name() + ".floor", FloorSeconds);
      add(setting.Name(), [](const std::string& folder, const Setting& measured) {
        return LogCommits(folder, measured).Run();
      });
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  for (const Setting& setting : kSettings) {
    const auto& log = seconds[setting.Name()];
    const auto& floor = seconds[setting.Name() + ".floor"];
    if (log.empty() || floor.empty()) continue;
    std::printf("ratio %s %.2f (%.0f us, floor %.0f us, %.1f MB/s)\n", setting.Name().c_str(),
                Median(log) / Median(floor), 1e6 * Median(log), 1e6 * Median(floor),
                static_cast<double>(setting.commit_bytes()) / 1e6 / Median(log));
  }
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  benchmark::Initialize(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: log DIRECTORY [google-benchmark flags]\n");
    return 64;
  }
  thinwire::Run(argv[1]);
  return 0;
}
