// Measures the cost of the wire protocol. One worker, then two workers, push and pull a model of
// 100 MB in fp32 over loopback gRPC. thinwire's server runs in its own process. The same run also
// sends as many bytes through a raw gRPC stream and copies as many bytes with memcpy, because
// figures of different runs are not comparable. Goodput is 4 bytes per value and direction, divided
// by the time.
//
// The raw stream carries the traffic of a step: 100 MB in each direction, sent without a copy in
// messages of 1 MiB. The server answers each message at once with a message of the same size.
// Writes and reads are independent. gRPC sizes the flow-control windows, as it does for thinwire.
// Neither side checks, folds or stores the bytes.
//
//   ratio wire.fp32.1worker    thinwire's goodput / the raw stream's goodput: the median of five
//                              rounds, each computed from the fastest calls in the round
//   ratio wire.fp32.2workers   total goodput of two workers / the raw stream's goodput
//   ratio wire.memcpy          the raw stream's goodput / the goodput of memcpy
//   ratio wire.tls.1worker     goodput of one worker with mutual TLS / its goodput in plaintext
//   ratio wire.tls.raw         the raw stream's goodput with mutual TLS / in plaintext
//   ratio wire.tls.1worker.raw thinwire's goodput / the raw stream's goodput, both with mutual TLS
//   ratio wire.NAME.cores      the ratio wire.NAME computed from the CPU time of both processes
//                              instead of elapsed time; other load on the machine affects this
//                              ratio least
#include <benchmark/benchmark.h>
#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/fixed_gradient_worker.h"
#include "bench/raw_stream.h"
#include "bench/server_process.h"
#include "common/time/clock.h"
#include "common/tls/authority.h"
#include "common/tls/identity.h"
#include "proto/grpc_credentials.h"

namespace thinwire {
namespace {

constexpr int64_t kValues = 26214400;
constexpr int64_t kBytes = 4 * kValues;
constexpr size_t kMessage = size_t{1} << 20;
constexpr size_t kLayers = 25;  // layers of 4 MiB; each has four shards of the maximum size
constexpr int kRounds = 5;
constexpr int kIterations = 8;
constexpr int kWarmCount = 2;  // untimed first calls; they warm up memory pools and connections

// The folders with the credentials of the server and the worker of the benchmarks with mutual TLS.
class TlsFolders {
 public:
  TlsFolders() {
    char path[] = "/tmp/wire_XXXXXX";
    CHECK(mkdtemp(path) != nullptr);
    folder_ = path;
    const Validity validity = Validity::Days(absl::Now(), 1);
    const KeyPair authority = *MakeAuthority(validity);
    const auto write = [&](const std::string& dir, const Identity& identity) {
      const KeyPair pair = *IssueCertificate(authority, identity, validity);
      CHECK(WritePemFiles(dir, CredentialFiles(authority.certificate, pair), false).ok());
    };
    write(server(), {Role::kServer, "train", 0});
    write(worker(), {Role::kWorker, "train", 0});
  }
  ~TlsFolders() { std::filesystem::remove_all(folder_); }

  std::string server() const { return folder_ + "/server"; }
  std::string worker() const { return folder_ + "/worker"; }

 private:
  std::string folder_;
};

// CREDENTIALS is a credentials folder; "": plaintext.
void ServeRaw(int pipe, const std::string& credentials) {
  const RawServer server(kBytes, kMessage, "127.0.0.1:0",
                         *Credentials::Load(credentials, std::nullopt));
  Announce(pipe, server.address());
}

// Joins the server at ADDRESS as worker WORKER.
std::unique_ptr<FixedGradientWorker> MakeWorker(const std::string& address, uint32_t worker,
                                                const Credentials& credentials) {
  std::vector<TensorShape> tensors;
  for (size_t i = 0; i < kLayers; ++i) tensors.push_back({absl::StrCat("w", i), {1024, 1024}});
  ClientOptions options;
  options.worker = WorkerId{worker};
  return std::make_unique<FixedGradientWorker>(address, options, tensors, credentials);
}

// Maps the name of a benchmark to its time in each round, in seconds.
using Rounds = std::map<std::string, std::vector<double>>;

// The fastest call of each benchmark in each round, which other processes have slowed least.
// `core_seconds` is the CPU time of this process plus the CPU time of its server, in the call that
// used the least CPU time.
struct Fastest {
  Rounds seconds;
  Rounds core_seconds;
};

// Returns the median over the rounds of OVER[round] / UNDER[round]. The two times of one round were
// measured under nearly the same machine load; times of different rounds were not.
double MedianRatio(const std::vector<double>& over, const std::vector<double>& under) {
  std::vector<double> ratios;
  std::ranges::transform(over, under, std::back_inserter(ratios), std::divides<>());
  std::ranges::sort(ratios);
  return ratios[ratios.size() / 2];
}

// Measures one call of WORK per iteration. SERVER is the server's process; its CPU time is added to
// the CPU time of this process. BYTES is the total size of the fp32 values that one call sends in
// each direction, without headers.
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

// CREDENTIALS is the credentials folder of the workers; "": plaintext.
void TimeWorkers(benchmark::State& state, Fastest& fastest, const std::string& name,
                 const ServerProcess& server, uint32_t workers, const std::string& credentials) {
  const Credentials loaded = *Credentials::Load(credentials, std::nullopt);
  std::vector<std::unique_ptr<FixedGradientWorker>> members;
  for (uint32_t w = 0; w < workers; ++w) members.push_back(MakeWorker(server.address(), w, loaded));
  const auto step = [&] {
    std::vector<std::thread> threads;
    for (uint32_t w = 1; w < workers; ++w) threads.emplace_back([&, w] { members[w]->Step(); });
    members[0]->Step();
    for (std::thread& t : threads) t.join();
  };
  Time(state, fastest, name, server.pid(), workers * kBytes, step);
}

void TimeRaw(benchmark::State& state, Fastest& fastest, const std::string& name,
             const ServerProcess& server, const std::string& credentials) {
  RawStream stream(server.address(), kBytes, kMessage,
                   *Credentials::Load(credentials, std::nullopt));
  Time(state, fastest, name, server.pid(), kBytes, [&] { stream.Exchange(kBytes / kMessage); });
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
  // All servers start first, because gRPC does not support fork() after its first use.
  const TlsFolders folders;
  const ServerProcess raw([](int pipe) { ServeRaw(pipe, ""); });
  const ServerProcess raw_tls([&](int pipe) { ServeRaw(pipe, folders.server()); });
  std::vector<std::unique_ptr<ServerProcess>> ones, twos, ones_tls;
  for (int r = 0; r < kRounds; ++r) {
    ones.push_back(std::make_unique<ServerProcess>([](int pipe) { ServeJob(pipe, 1); }));
    twos.push_back(std::make_unique<ServerProcess>([](int pipe) { ServeJob(pipe, 2); }));
    ones_tls.push_back(
        std::make_unique<ServerProcess>([&](int pipe) { ServeJob(pipe, 1, folders.server()); }));
  }
  Fastest fastest;
  // The benchmarks alternate, so that slow changes of the machine load affect all of them equally.
  for (int r = 0; r < kRounds; ++r) {
    const auto add = [](const std::string& name, auto time) {
      benchmark::RegisterBenchmark(name.c_str(), time)
          ->Iterations(kIterations)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    };
    add("memcpy", [&](benchmark::State& s) { TimeMemcpy(s, fastest); });
    add("raw_slices", [&](benchmark::State& s) { TimeRaw(s, fastest, "raw", raw, ""); });
    add("raw_slices_tls",
        [&](benchmark::State& s) { TimeRaw(s, fastest, "raw_tls", raw_tls, folders.worker()); });
    add("fp32_1worker",
        [&, r](benchmark::State& s) { TimeWorkers(s, fastest, "workers1", *ones[r], 1, ""); });
    add("fp32_1worker_tls", [&, r](benchmark::State& s) {
      TimeWorkers(s, fastest, "workers1_tls", *ones_tls[r], 1, folders.worker());
    });
    add("fp32_2workers",
        [&, r](benchmark::State& s) { TimeWorkers(s, fastest, "workers2", *twos[r], 2, ""); });
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
  ratio("tls.1worker", "workers1_tls", 1, "workers1");
  ratio("tls.raw", "raw_tls", 1, "raw");
  ratio("tls.1worker.raw", "workers1_tls", 1, "raw_tls");
  for (const auto& [name, core_seconds] : fastest.core_seconds) {
    std::printf("%-12s %6.1f ms, %6.1f ms of all cores\n", name.c_str(),
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
