// Measures the latency that an idle connection adds to a step. In a step, the client pushes the
// gradient of a small model and waits for the server's verdict on the push and for the new
// parameters. Steps that start after 1.05 s without traffic, as after a long backward pass, are
// compared with steps that start immediately after the previous step. thinwire's client and server
// run in two processes, connected by gRPC over loopback.
//
// After a second without events, the threads of gRPC 1.51 sleep for 100 ms at a time. The client's
// heartbeats every 500 ms keep the threads of both processes awake. A second client, with a
// heartbeat every 3 s, shows the delay that sleeping threads cause.
//
//   ratio idle.added_ms                 median idle step - median immediate step, in ms
//   ratio idle.added_ms.rare_heartbeats the same difference with a heartbeat every 3 s
#include <benchmark/benchmark.h>
#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "bench/fixed_gradient_worker.h"
#include "bench/server_process.h"
#include "common/time/clock.h"

namespace thinwire {
namespace {

constexpr absl::Duration kIdle = absl::Milliseconds(1050);
constexpr int kIdleSteps = 13;
constexpr int kBusySteps = 300;
constexpr int kWarmSteps = 20;

// Maps the name of a benchmark to its median step duration in milliseconds.
using Medians = std::map<std::string, double>;

// Measures steps with a pause of IDLE before each step. Stores the median duration of a step, in
// milliseconds, in MEDIAN.
void TimeSteps(benchmark::State& state, FixedGradientWorker& worker, absl::Duration idle,
               double& median) {
  SteadyClock clock;
  std::vector<double> times;
  for (int i = 0; i < kWarmSteps; ++i) worker.Step();
  for (auto _ : state) {
    absl::SleepFor(idle);
    const absl::Time begin = clock.Now();
    worker.Step();
    times.push_back(absl::ToDoubleMilliseconds(clock.Now() - begin));
    state.SetIterationTime(times.back() / 1e3);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  median = times[times.size() / 2];
}

void Add(const std::string& name, const ServerProcess& server, absl::Duration heartbeat_interval,
         absl::Duration idle, Medians& medians) {
  benchmark::RegisterBenchmark(
      name.c_str(),
      [=, &server, &medians](benchmark::State& state) {
        ClientOptions options;
        options.heartbeat_interval = heartbeat_interval;
        FixedGradientWorker worker(server.address(), options, {{"w", {256, 256}}});
        TimeSteps(state, worker, idle, medians[name]);
      })
      ->Iterations(idle > absl::ZeroDuration() ? kIdleSteps : kBusySteps)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

void Run(int argc, char** argv) {
  const auto serve = [](int pipe) { ServeJob(pipe, 1); };
  const ServerProcess busy(serve), idle(serve), rare(serve);
  Medians medians;
  Add("back_to_back", busy, absl::Milliseconds(500), absl::ZeroDuration(), medians);
  Add("idle", idle, absl::Milliseconds(500), kIdle, medians);
  Add("idle_rare_heartbeats", rare, absl::Seconds(3), kIdle, medians);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  for (const auto& [name, median] : medians) std::printf("%-21s %7.2f ms\n", name.c_str(), median);
  const auto ratio = [&](const char* name, const char* of) {
    if (!medians.contains(of) || !medians.contains("back_to_back")) return;
    std::printf("ratio idle.%s %.1f\n", name, medians[of] - medians["back_to_back"]);
  };
  ratio("added_ms", "idle");
  ratio("added_ms.rare_heartbeats", "idle_rare_heartbeats");
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  FLAGS_minloglevel = google::WARNING;
  google::InitGoogleLogging(argv[0]);
  thinwire::Run(argc, argv);
}
