// Measures rounds of small models over loopback gRPC: one worker, then two, push and pull all values
// in fp32 in mode sync. thinwire's server runs in its own process, all workers in this one. The floor
// is a raw gRPC stream (bench/raw_stream.h) that sends as many bytes in each direction, in messages of
// up to 1 MiB, to a process that answers each message at once.
//
// Each line has the medians of seven batches of rounds, which alternate with the other benchmarks:
//
//   rounds.SIZE.NAME MS ms, CORE_MS ms of all cores, SWITCHES context switches
//   ratio rounds.SIZE.NAME  the time of thinwire's round / the time of the raw stream
//
// CORE_MS is the CPU time of both processes in one round, and SWITCHES the number of times that a
// thread of them went to sleep. SWITCHES depends least on other load of the machine.
#include <benchmark/benchmark.h>
#include <dirent.h>
#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "bench/fixed_gradient_worker.h"
#include "bench/raw_stream.h"
#include "bench/server_process.h"
#include "common/base/process_setup.h"
#include "common/time/clock.h"

namespace thinwire {
namespace {

constexpr int kBatches = 7;
constexpr size_t kLargestMessage = size_t{1} << 20;

// A model of four square matrices and four vectors.
struct Size {
  const char* name;
  int64_t side;
  int rounds;  // of a batch

  std::vector<TensorShape> tensors() const {
    std::vector<TensorShape> result;
    for (int i = 0; i < 4; ++i) {
      result.push_back({absl::StrCat("matrix", i), {side, side}});
      result.push_back({absl::StrCat("vector", i), {side}});
    }
    return result;
  }
  size_t bytes() const { return static_cast<size_t>(4 * 4 * (side * side + side)); }
  // The messages of a round of a raw stream.
  int messages() const {
    return static_cast<int>((bytes() + kLargestMessage - 1) / kLargestMessage);
  }
  size_t message_bytes() const { return bytes() / static_cast<size_t>(messages()); }
};

constexpr Size kSizes[] = {{"0.1mb", 80, 400}, {"1mb", 250, 200}, {"10mb", 800, 20}};

// Returns how often the threads of PROCESS have gone to sleep so far. Threads that have ended are not
// counted.
int64_t Switches(pid_t process) {
  int64_t sum = 0;
  const std::string folder = absl::StrCat("/proc/", process, "/task");
  DIR* const tasks = opendir(folder.c_str());
  CHECK(tasks != nullptr);
  while (const dirent* const task = readdir(tasks)) {
    std::ifstream status(absl::StrCat(folder, "/", task->d_name, "/status"));
    std::string line;
    while (std::getline(status, line)) {
      int64_t count = 0;
      if (!absl::StartsWith(line, "voluntary_ctxt_switches:")) continue;
      CHECK(absl::SimpleAtoi(line.substr(line.find(':') + 1), &count));
      sum += count;
    }
  }
  closedir(tasks);
  return sum;
}

// What a round costs, in each batch.
struct Costs {
  std::vector<double> seconds, core_seconds, switches;
};

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Measures one batch: a call of RUN, which makes ROUNDS rounds with SERVER.
void Measure(benchmark::State& state, Costs& costs, pid_t server, int rounds,
             absl::FunctionRef<void()> run) {
  SteadyClock clock;
  for (auto _ : state) {
    const auto cores = [server] { return CoreSeconds(getpid()) + CoreSeconds(server); };
    const auto switches = [server] { return Switches(getpid()) + Switches(server); };
    const double cores_before = cores();
    const int64_t switches_before = switches();
    const absl::Time begin = clock.Now();
    run();
    const double seconds = absl::ToDoubleSeconds(clock.Now() - begin);
    state.SetIterationTime(seconds / rounds);
    costs.seconds.push_back(seconds / rounds);
    costs.core_seconds.push_back((cores() - cores_before) / rounds);
    costs.switches.push_back(static_cast<double>(switches() - switches_before) / rounds);
  }
}

void MeasureRaw(benchmark::State& state, Costs& costs, const Size& size,
                const ServerProcess& server) {
  RawStream stream(server.address(), size.bytes(), size.message_bytes());
  stream.Exchange(size.messages());
  Measure(state, costs, server.pid(), size.rounds, [&] {
    for (int i = 0; i < size.rounds; ++i) stream.Exchange(size.messages());
  });
}

using Workers = std::vector<std::unique_ptr<FixedGradientWorker>>;

void RunRounds(const Workers& workers, int rounds) {
  std::vector<std::thread> threads;
  for (const auto& worker : workers) {
    threads.emplace_back([&worker, rounds] {
      for (int i = 0; i < rounds; ++i) worker->Step();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Workers MakeWorkers(const Size& size, const ServerProcess& server, uint32_t count) {
  Workers workers(count);
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < count; ++w) {
    threads.emplace_back([&, w] {
      ClientOptions options;
      options.worker = WorkerId{w};
      workers[w] = std::make_unique<FixedGradientWorker>(server.address(), options, size.tensors());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return workers;
}

void Run(int argc, char** argv) {
  // All servers start first, because gRPC does not support fork() after its first use.
  std::map<std::string, ServerProcess> raw, ones, twos;
  for (const Size& size : kSizes) {
    raw.try_emplace(size.name, [&size](int pipe) {
      const RawServer server(size.bytes(), size.message_bytes());
      Announce(pipe, server.address());
    });
    ones.try_emplace(size.name, [](int pipe) { ServeJob(pipe, 1); });
    twos.try_emplace(size.name, [](int pipe) { ServeJob(pipe, 2); });
  }
  std::map<std::string, Costs> costs;
  std::map<std::string, Workers> workers;  // made by the first batch
  const auto add = [](const std::string& name, auto measure) {
    benchmark::RegisterBenchmark(name.c_str(), measure)
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  };
  for (int batch = 0; batch < kBatches; ++batch) {
    for (const Size& size : kSizes) {
      const std::string name = size.name;
      add(name + ".raw", [&, name](benchmark::State& state) {
        MeasureRaw(state, costs[name + ".raw"], size, raw.at(name));
      });
      const auto add_workers = [&](const std::string& of, uint32_t count,
                                   const ServerProcess& server) {
        add(of, [&, of, count](benchmark::State& state) {
          Workers& members = workers[of];
          if (members.empty()) {
            members = MakeWorkers(size, server, count);
            RunRounds(members, size.rounds);
          }
          Measure(state, costs[of], server.pid(), size.rounds,
                  [&] { RunRounds(members, size.rounds); });
        });
      };
      add_workers(name + ".1worker", 1, ones.at(name));
      add_workers(name + ".2workers", 2, twos.at(name));
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  for (const auto& [name, cost] : costs) {
    std::printf("rounds.%-15s %7.3f ms, %7.3f ms of all cores, %6.1f context switches\n",
                name.c_str(), 1e3 * Median(cost.seconds), 1e3 * Median(cost.core_seconds),
                Median(cost.switches));
  }
  for (const auto& [name, cost] : costs) {
    const auto floor = costs.find(name.substr(0, name.rfind('.')) + ".raw");
    if (floor == costs.end() || name == floor->first) continue;
    std::printf("ratio rounds.%s %.2f\n", name.c_str(),
                Median(cost.seconds) / Median(floor->second.seconds));
  }
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  FLAGS_minloglevel = google::WARNING;
  google::InitGoogleLogging(argv[0]);
  thinwire::SkipDeadlockSearch();
  thinwire::Run(argc, argv);
}
