// What the wire costs: a model of 100 MB in fp32 pushed and pulled over loopback gRPC, by one
// worker and by two, against one real server in a process of its own; beside the same bytes both
// ways through a bare generic stream, and beside memcpy. All in one run, since a machine is never
// twice the same. Goodput counts values: 4 bytes each, once per direction.
//
// The bare stream has the traffic of a step: 100 MB of its own on either side, sent from where they
// lie in messages of 1 MiB, each answered by one of its size as soon as it has come, writes and
// reads independent of each other, the same windows. What it does not have is a use for the bytes:
// nobody checks, folds or keeps them.
//
//   ratio wire.fp32.1worker    thinwire's goodput / that of the raw slices; 2workers: both
//   workers'.
//                              The median of five rounds, each by its fastest calls
//   ratio wire.memcpy          the raw slices' goodput / memcpy's
//   ... .cores                 the same per second of a core, both processes together: what a
//                              machine that others keep busy distorts least
#include <benchmark/benchmark.h>
#include <glog/logging.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/raw_stream.h"
#include "bench/server_process.h"
#include "client/client.h"
#include "client/grpc_transport.h"
#include "common/clock.h"
#include "common/huge_page_arena.h"

namespace thinwire {
namespace {

constexpr int64_t kValues = 26214400;
constexpr int64_t kBytes = 4 * kValues;
constexpr size_t kMessage = size_t{1} << 20;
constexpr int kWindow = 2 << 20;
constexpr size_t kLayers = 25;  // of 4 MiB each, four shards of the largest size
constexpr int kRounds = 5;
constexpr int kIterations = 8;
constexpr int kWarmCount = 2;  // calls that are not timed: they fill pools and windows

void ServeRaw(int to) {
  const RawServer server(kBytes, kMessage, kWindow);
  Announce(to, server.address());
}

// One worker of a job, with a gradient for every layer.
class Trainer {
 public:
  Trainer(const std::string& address, uint32_t worker)
      : transport_({address}, grpc::InsecureChannelCredentials()) {
    std::vector<TensorShape> tensors;
    for (size_t i = 0; i < kLayers; ++i) {
      tensors.push_back({absl::StrCat("w", i), {1024, 1024}});
      gradients_.push_back(std::make_shared<std::vector<float>>(kValues / kLayers, 1e-3f));
    }
    ClientOptions options;
    options.worker = WorkerId{worker};
    options.memory = &arena_;
    client_ = *Client::Make(options, tensors, transport_);
    const std::vector<std::span<const float>> initial(kLayers, *gradients_[0]);
    step_ = *client_->Join(initial);
  }

  // Pushes every gradient and waits for every parameter of the next step.
  void Step() {
    client_->BeginStep(step_, 32);
    CHECK(client_->WaitAll().ok());
    for (uint32_t t = kLayers; t-- > 0;) client_->Ready(t, *gradients_[t], gradients_[t]);
    CHECK(client_->EndStep().ok());
    step_ = *client_->NextStep();
    CHECK(client_->WaitAll().ok());
  }

 private:
  HugePageArena arena_;
  GrpcTransport transport_;
  std::vector<std::shared_ptr<const std::vector<float>>> gradients_;
  std::unique_ptr<Client> client_;
  thinwire::Step step_;
};

// By the name of a kind, one figure a round.
using Rounds = std::map<std::string, std::vector<double>>;

// Of the fastest call of each kind in each round, so that a busy machine's bad moments do not
// count: its seconds, and the core seconds of the call that used fewest, of this process and its
// server together.
struct Fastest {
  Rounds seconds;
  Rounds core_seconds;
};

// The median over the rounds of OVER's figure by UNDER's: what the machine is like changes from
// round to round, and within one hardly.
double MedianRatio(const std::vector<double>& over, const std::vector<double>& under) {
  std::vector<double> ratios;
  std::ranges::transform(over, under, std::back_inserter(ratios), std::divides<>());
  std::ranges::sort(ratios);
  return ratios[ratios.size() / 2];
}

// Times WORK, which SERVER takes part in, once per iteration, for 2 * BYTES.
template <typename Work>
void Time(benchmark::State& state, Fastest& fastest, const std::string& name, pid_t server,
          int64_t bytes, const Work& work) {
  SteadyClock clock;
  const auto cores = [server] { return CoreSeconds(getpid()) + CoreSeconds(server); };
  for (int i = 0; i < kWarmCount; ++i) work();
  double least_seconds = HUGE_VAL, least_cores = HUGE_VAL;
  for (auto _ : state) {
    const double used = cores();
    const absl::Time begin = clock.Now();
    work();
    const double seconds = absl::ToDoubleSeconds(clock.Now() - begin);
    state.SetIterationTime(seconds);
    least_seconds = std::min(least_seconds, seconds);
    least_cores = std::min(least_cores, cores() - used);
  }
  fastest.seconds[name].push_back(least_seconds);
  fastest.core_seconds[name].push_back(least_cores);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * 2 * bytes);
}

void TimeWorkers(benchmark::State& state, Fastest& fastest, const ServerProcess& server,
                 uint32_t workers) {
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (uint32_t w = 0; w < workers; ++w)
    trainers.push_back(std::make_unique<Trainer>(server.address(), w));
  const auto step = [&] {
    std::vector<std::thread> threads;
    for (uint32_t w = 1; w < workers; ++w) threads.emplace_back([&, w] { trainers[w]->Step(); });
    trainers[0]->Step();
    for (std::thread& t : threads) t.join();
  };
  Time(state, fastest, absl::StrCat("workers", workers), server.pid(), workers * kBytes, step);
}

void TimeRaw(benchmark::State& state, Fastest& fastest, const ServerProcess& server) {
  RawStream stream(server.address(), kBytes, kMessage, kWindow);
  Time(state, fastest, "raw", server.pid(), kBytes, [&] { stream.Exchange(kBytes / kMessage); });
}

void TimeMemcpy(benchmark::State& state, Fastest& fastest) {
  std::vector<char> here(kBytes, 1), there(kBytes, 2);
  Time(state, fastest, "memcpy", getpid(), kBytes, [&] {
    memcpy(there.data(), here.data(), kBytes);
    benchmark::ClobberMemory();
    memcpy(here.data(), there.data(), kBytes);
    benchmark::ClobberMemory();
  });
}

void Run(int argc, char** argv) {
  // All servers first: a process that has begun to use gRPC must not fork.
  const ServerProcess raw(ServeRaw);
  std::vector<std::unique_ptr<ServerProcess>> ones, twos;
  for (int r = 0; r < kRounds; ++r) {
    ones.push_back(std::make_unique<ServerProcess>([](int to) { ServeJob(to, 1); }));
    twos.push_back(std::make_unique<ServerProcess>([](int to) { ServeJob(to, 2); }));
  }
  Fastest fastest;
  // The kinds take turns, so that each meets the machine's good and bad minutes.
  for (int r = 0; r < kRounds; ++r) {
    const auto add = [](const std::string& name, auto time) {
      benchmark::RegisterBenchmark(name.c_str(), time)
          ->Iterations(kIterations)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    };
    add("memcpy", [&](benchmark::State& s) { TimeMemcpy(s, fastest); });
    add("raw_slices", [&](benchmark::State& s) { TimeRaw(s, fastest, raw); });
    add("fp32_1worker", [&, r](benchmark::State& s) { TimeWorkers(s, fastest, *ones[r], 1); });
    add("fp32_2workers", [&, r](benchmark::State& s) { TimeWorkers(s, fastest, *twos[r], 2); });
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  const auto ratio = [&](const std::string& name, const char* of, double scale, const char* to) {
    const auto line = [&](const char* what, const Rounds& rounds) {
      if (!rounds.contains(of) || !rounds.contains(to)) return;
      std::printf("ratio wire.%s%s %.2f\n", name.c_str(), what,
                  scale * MedianRatio(rounds.at(to), rounds.at(of)));
    };
    line("", fastest.seconds);
    line(".cores", fastest.core_seconds);
  };
  ratio("fp32.1worker", "workers1", 1, "raw");
  ratio("fp32.2workers", "workers2", 2, "raw");
  ratio("memcpy", "raw", 1, "memcpy");
  for (const auto& [name, core_seconds] : fastest.core_seconds) {
    std::printf("%-9s %6.1f ms, %6.1f ms of all cores\n", name.c_str(),
                1e3 * std::ranges::min(fastest.seconds[name]),
                1e3 * std::ranges::min(core_seconds));
  }
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  FLAGS_minloglevel = google::WARNING;
  google::InitGoogleLogging(argv[0]);
  thinwire::Run(argc, argv);
}
