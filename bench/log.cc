// Compares the event log with the lowest cost of durable bytes: a loop that writes as many bytes to
// a file with one call of write and flushes them with fdatasync.
//
//   log DIRECTORY [google-benchmark flags]
//
// DIRECTORY must be on the disk to measure. Each benchmark measures commits of a fixed number of
// records, as the last DONE of a commit starts the next one. Between two commits, the same thread
// writes and flushes as many bytes as a commit has to another file, because the speed of a disk
// varies. Both files are replaced after 64 MiB, which is not measured. The time of a commit begins
// before its first Append and ends with its last DONE.
//
// Below google-benchmark's table, the program prints one line per benchmark:
//
//   ratio log.64KiB.16 1.05 (1.05 ms and 1.00 ms; medians 1.21 ms and 1.18 ms)
//
// The ratio is the time of the fastest commit of 16 records of 64 KiB, divided by the time of the
// fastest write and fdatasync of as many bytes.
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
#include "common/memory/byte_chain.h"
#include "common/time/thread_executor.h"
#include "server/durable/event_log.h"
#include "server/durable/files.h"

namespace thinwire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kSegmentBytes = 64 << 20;

struct Setting {
  size_t record_bytes;
  int record_count;  // per commit
  int commit_count;

  size_t commit_bytes() const { return record_bytes * record_count; }
  std::string Name() const {
    const size_t kib = record_bytes >> 10;
    const std::string size = kib < 1024 ? absl::StrCat(kib, "KiB") : absl::StrCat(kib >> 10, "MiB");
    return absl::StrCat("log.", size, ".", record_count);
  }
};

constexpr Setting kSettings[] = {{1 << 10, 1, 500},   {1 << 10, 64, 500}, {64 << 10, 1, 500},
                                 {64 << 10, 16, 300}, {1 << 20, 1, 300},  {1 << 20, 8, 60}};

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

// A file that is written and flushed as often as the log.
class PlainFile {
 public:
  PlainFile(const std::string& folder, size_t byte_count)
      : folder_(folder), bytes_(SomeBytes(byte_count)) {}
  ~PlainFile() { close(file_); }

  // Writes and flushes the bytes. Returns the seconds.
  double Write() {
    if (file_ < 0 || written_bytes_ >= kSegmentBytes) Begin();
    const auto begin = Clock::now();
    for (size_t written = 0; written < bytes_->size();) {
      const ssize_t part = write(file_, bytes_->data() + written, bytes_->size() - written);
      PCHECK(part >= 0) << folder_;
      written += static_cast<size_t>(part);
    }
    PCHECK(fdatasync(file_) == 0) << folder_;
    written_bytes_ += bytes_->size();
    return SecondsSince(begin);
  }

 private:
  void Begin() {
    if (file_ >= 0) close(file_);
    const std::string path = absl::StrCat(folder_, "/plain", file_count_++);
    file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    PCHECK(file_ >= 0 && fsync(file_) == 0) << path;
    written_bytes_ = 0;
  }

  const std::string folder_;
  const std::shared_ptr<const std::vector<std::byte>> bytes_;
  int file_ = -1;
  int file_count_ = 0;
  uint64_t written_bytes_ = 0;
};

struct Seconds {
  std::vector<double> commits;
  std::vector<double> plain_writes;
};

// Measures commits of an event log and plain writes, alternately.
class Comparison {
 public:
  Comparison(const std::string& folder, const Setting& setting)
      : setting_(setting),
        bytes_(SomeBytes(setting.record_bytes)),
        plain_(folder, setting.commit_bytes()) {
    auto log =
        EventLog::Open(files_, {.folder = folder, .segment_bytes = kSegmentBytes}, threads_.Make(),
                       1, [](const absl::Status& status) { LOG(FATAL) << status; });
    CHECK(log.ok()) << log.status();
    log_ = *std::move(log);
  }

  // Call once.
  Seconds Run() {
    log_->Append(Record(), [this](LogSequence) { Continue(); });
    finished_.WaitForNotification();
    return seconds_;
  }

 private:
  // Runs on the log's thread, as does the callback of each record.
  void Continue() {
    if (static_cast<int>(seconds_.commits.size()) == setting_.commit_count) {
      return finished_.Notify();
    }
    seconds_.plain_writes.push_back(plain_.Write());
    begin_ = Clock::now();
    for (int i = 1; i < setting_.record_count; ++i) log_->Append(Record(), [](LogSequence) {});
    log_->Append(Record(), [this](LogSequence) {
      seconds_.commits.push_back(SecondsSince(begin_));
      Continue();
    });
  }

  ByteChain Record() const { return ByteChain(*bytes_, bytes_); }

  const Setting setting_;
  const std::shared_ptr<const std::vector<std::byte>> bytes_;
  PosixFiles files_;
  Threads threads_;
  PlainFile plain_;
  Clock::time_point begin_;
  Seconds seconds_;
  absl::Notification finished_;
  std::unique_ptr<EventLog> log_;  // its destructor ends the thread that uses the other members
};

double FastestMs(const std::vector<double>& seconds) { return 1e3 * std::ranges::min(seconds); }

double MedianMs(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  return 1e3 * *middle;
}

Seconds Measure(benchmark::State& state, const std::string& directory, const Setting& setting) {
  const std::string folder = directory + "/thinwire_bench_log";
  std::filesystem::create_directory(folder);
  Seconds seconds = Comparison(folder, setting).Run();
  std::filesystem::remove_all(folder);
  auto next = seconds.commits.begin();
  for (auto _ : state) state.SetIterationTime(*next++);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * setting.commit_bytes()));
  return seconds;
}

void Run(const std::string& directory) {
  std::map<std::string, Seconds> measured;
  for (const Setting& setting : kSettings) {
    benchmark::RegisterBenchmark(setting.Name().c_str(),
                                 [&](benchmark::State& state) {
                                   measured[setting.Name()] = Measure(state, directory, setting);
                                 })
        ->Iterations(setting.commit_count)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  for (const auto& [name, seconds] : measured) {
    const double commit = FastestMs(seconds.commits), plain = FastestMs(seconds.plain_writes);
    std::printf("ratio %s %.2f (%.2f ms and %.2f ms; medians %.2f ms and %.2f ms)\n", name.c_str(),
                commit / plain, commit, plain, MedianMs(seconds.commits),
                MedianMs(seconds.plain_writes));
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
