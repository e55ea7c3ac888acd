// Measures the cost of a span of the trace, relative to its lower bound: the two readings of the
// clock that any measurement of a time needs. With two threads, both add their spans to one tracer,
// as the threads of a process do.
//
//   ratio trace.span 2.1 (104 ns and 49 ns)
//
// The ratio is the time of a span divided by the time of two readings of the clock, from the same
// run.
#include "common/time/trace.h"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/time/clock.h"

namespace thinwire {
namespace {

SteadyClock& TheClock() {
  static SteadyClock clock;
  return clock;
}

void ReadClock(benchmark::State& state) {
  Clock& clock = TheClock();
  for (auto _ : state) {
    benchmark::DoNotOptimize(clock.Now());
    benchmark::DoNotOptimize(clock.Now());
  }
}

void AddSpan(benchmark::State& state) {
  static Tracer tracer("worker 0", TheClock());
  uint64_t step = 0;
  for (auto _ : state) TraceSpan span(&tracer, "training", "step", {.step = Step{step++}});
}

BENCHMARK(ReadClock)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(AddSpan)->Threads(1)->Threads(2)->UseRealTime();

// Prints the ratios below the table.
class Reporter : public benchmark::ConsoleReporter {
 public:
  Reporter() : ConsoleReporter(OO_None) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      // The threads share the iterations, so one takes a thread this long.
      seconds_[run.run_name.function_name][run.threads] =
          run.real_accumulated_time * run.threads / static_cast<double>(run.iterations);
    }
  }
  void Finalize() override {
    for (const auto& [threads, span] : seconds_["AddSpan"]) {
      const double floor = seconds_["ReadClock"][threads];
      std::printf("ratio trace.span%s %.1f (%.0f ns and %.0f ns)\n",
                  threads == 1 ? "" : ".2threads", span / floor, span * 1e9, floor * 1e9);
    }
  }

 private:
  std::map<std::string, std::map<int64_t, double>> seconds_;  // of one iteration, by threads
};

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  thinwire::Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
}
