// The benchmarks of arithmetic report the time of their fastest call. A mean would include
// interruptions by other processes; the fastest call does not. Below google-benchmark's table,
// FastestReporter prints lines `ratio NAME VALUE` and `ns NAME VALUE`.
#ifndef THINWIRE_BENCH_FASTEST_H_
#define THINWIRE_BENCH_FASTEST_H_

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace thinwire {

inline constexpr char kFastest[] = "fastest_us";

// Runs CALL once per iteration and stores the fastest time, in microseconds, in the counter
// kFastest.
template <typename Call>
void MeasureFastest(benchmark::State& state, const Call& call) {
  using Clock = std::chrono::steady_clock;
  auto fastest = Clock::duration::max();
  for (auto _ : state) {
    const auto start = Clock::now();
    call();
    benchmark::ClobberMemory();
    fastest = std::min(fastest, Clock::now() - start);
  }
  state.counters[kFastest] = std::chrono::duration<double, std::micro>(fastest).count();
}

// Prints google-benchmark's table and stores the time of the fastest call of every benchmark.
class FastestReporter : public benchmark::ConsoleReporter {
 public:
  FastestReporter() : ConsoleReporter(OO_Tabular) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const auto counter = run.counters.find(kFastest);
      if (run.error_occurred || counter == run.counters.end()) continue;
      const double call = counter->second.value;
      const auto [at, first] = fastest_.try_emplace(run.run_name.function_name, call);
      if (!first) at->second = std::min(at->second, call);
    }
    benchmark::ConsoleReporter::ReportRuns(runs);
  }

  // Prints `ratio NAME time(OVER) / time(UNDER)` if both benchmarks ran.
  void PrintRatio(const std::string& name, const std::string& over,
                  const std::string& under) const {
    const auto above = fastest_.find(over), below = fastest_.find(under);
    if (above == fastest_.end() || below == fastest_.end()) return;
    std::printf("ratio %s %.2f\n", name.c_str(), above->second / below->second);
  }

  // Prints `ns NAME time / COUNT` if the benchmark NAME ran. COUNT is the number of items that one
  // call processes.
  void PrintNanosecondsEach(const std::string& name, double count) const {
    const auto call = fastest_.find(name);
    if (call == fastest_.end()) return;
    std::printf("ns %s %.2f\n", name.c_str(), 1000 * call->second / count);
  }

 private:
  std::map<std::string, double> fastest_;
};

// Initializes google-benchmark from the command line. Unless a flag changes it, the minimum
// duration of a benchmark is 0.1 s, so that a few calls run without interruption by other
// processes. Returns false after an unknown flag, which google-benchmark reports.
inline bool InitializeBenchmarks(int argc, char** argv) {
  std::vector<std::string> flags = {argv[0], "--benchmark_min_time=0.1"};
  flags.insert(flags.end(), argv + 1, argv + argc);
  std::vector<char*> pointers;
  for (std::string& flag : flags) pointers.push_back(flag.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  return !benchmark::ReportUnrecognizedArguments(count, pointers.data());
}

}  // namespace thinwire

#endif  // THINWIRE_BENCH_FASTEST_H_
