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
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "bench/server_process.h"
#include "client/client.h"
#include "client/transport/grpc_transport.h"
#include "common/time/clock.h"
#include "common/time/thread_executor.h"

namespace thinwire {
namespace {

constexpr absl::Duration kIdle = absl::Milliseconds(1050);
constexpr int kIdleSteps = 13;
constexpr int kBusySteps = 300;
constexpr int kWarmSteps = 20;

// A worker that trains a model of 256 KiB against one server.
class SmallModelWorker {
 public:
  SmallModelWorker(const std::string& address, absl::Duration heartbeat_interval)
      : transport_({address}) {
    ClientOptions options;
    options.heartbeat_interval = heartbeat_interval;
    client_ = *Client::Make(options, {{"w", {256, 256}}}, transport_, threads_);
    const std::vector<std::span<const float>> initial = {gradient_};
    step_ = *client_->Join(initial);
    CHECK(client_->WaitAll().ok());
  }

  void Step() {
    client_->BeginStep(step_, 32);
    client_->Ready(0, gradient_);
    CHECK(client_->EndStep().ok());
    step_ = *client_->NextStep();
    CHECK(client_->WaitAll().ok());
  }

 private:
  Threads threads_;
  GrpcTransport transport_;
  const std::vector<float> gradient_ = std::vector<float>(size_t{256} * 256, 1e-3f);
  std::unique_ptr<Client> client_;
  thinwire::Step step_;
};

// Maps the name of a benchmark to its median step duration in milliseconds.
using Medians = std::map<std::string, double>;

// Measures steps with a pause of IDLE before each step. Stores the median duration of a step, in
// milliseconds, in MEDIAN.
void TimeSteps(benchmark::State& state, SmallModelWorker& worker, absl::Duration idle,
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
  benchmark::RegisterBenchmark(name.c_str(),
                               [=, &server, &medians](benchmark::State& state) {
                                 SmallModelWorker worker(server.address(), heartbeat_interval);
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
