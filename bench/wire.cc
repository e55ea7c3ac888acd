// What the wire costs: a model of 100 MB in fp32 pushed and pulled over loopback gRPC, by one
// worker and by two, against one real server in a process of its own; beside the same bytes both
// ways through a bare generic stream of 1 MiB messages, and beside memcpy. All in one run, since a
// machine is never twice the same. Goodput counts values: 4 bytes each, once per direction.
//
//   ratio wire.fp32.1worker    thinwire's goodput / that of the raw slices; 2workers: both workers'
//   ratio wire.memcpy          the raw slices' goodput / memcpy's
#include <benchmark/benchmark.h>
#include <glog/logging.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/raw_stream.h"
#include "client/client.h"
#include "client/grpc_transport.h"
#include "common/clock.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/rule.h"
#include "server/core/schedule.h"
#include "server/edge/job.h"
#include "server/edge/listener.h"

namespace thinwire {
namespace {

constexpr int64_t kValues = 26214400;
constexpr int64_t kBytes = 4 * kValues;
constexpr size_t kMessage = size_t{1} << 20;
constexpr int kWindow = 2 << 20;
constexpr size_t kLayers = 25;  // of 4 MiB each, four shards of the largest size
constexpr int kRounds = 3;
constexpr int kIterations = 8;
constexpr int kWarmCount = 2;  // calls that are not timed: they fill pools and windows

// A child process that serves until it is killed, and its address.
class Child {
 public:
  // SERVE is called in the child with where to write the address; it never returns.
  template <typename Serve>
  explicit Child(const Serve& serve) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    pid_ = fork();
    CHECK_GE(pid_, 0);
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(ends[0]);
      serve(ends[1]);
      _exit(1);
    }
    close(ends[1]);
    char text[64];
    const ssize_t length = read(ends[0], text, sizeof(text));
    CHECK_GT(length, 0) << "the server did not start";
    address_.assign(text, static_cast<size_t>(length));
    close(ends[0]);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  const std::string& address() const { return address_; }

 private:
  pid_t pid_;
  std::string address_;
};

void Announce(int to, const std::string& address) {
  CHECK_EQ(write(to, address.data(), address.size()), static_cast<ssize_t>(address.size()));
  while (true) pause();
}

void ServeJob(int to, uint32_t workers) {
  SteadyClock clock;
  JobOptions options;
  options.rule = Rule::Sync(workers);
  options.epoch = Epoch{1};
  Job job(options, *MakeOptimizer({.name = "sgd"}), *Schedule::Make({}), clock);
  job.StartTicking(absl::Seconds(1));
  auto listener = *Listener::Start(job, "127.0.0.1:0");
  Announce(to, listener->address());
}

void ServeEcho(int to) {
  const EchoServer server(kWindow);
  Announce(to, server.address());
}

// One worker of a job, with a gradient for every layer.
class Trainer {
 public:
  Trainer(const std::string& address, uint32_t worker)
      : transport_({address}, grpc::InsecureChannelCredentials()) {
    std::vector<TensorShape> tensors;
    for (size_t i = 0; i < kLayers; ++i) tensors.push_back({absl::StrCat("w", i), {1024, 1024}});
    ClientOptions options;
    options.worker = WorkerId{worker};
    client_ = *Client::Make(options, tensors, transport_);
    const std::vector<std::span<const float>> initial(kLayers, gradient_);
    step_ = *client_->Join(initial);
  }

  // Pushes every gradient and waits for every parameter of the next step.
  void Step() {
    client_->BeginStep(step_, 32);
    CHECK(client_->WaitAll().ok());
    for (uint32_t t = kLayers; t-- > 0;) client_->Ready(t, gradient_);
    CHECK(client_->EndStep().ok());
    step_ = *client_->NextStep();
    CHECK(client_->WaitAll().ok());
  }

 private:
  GrpcTransport transport_;
  const std::vector<float> gradient_ = std::vector<float>(kValues / kLayers, 1e-3f);
  std::unique_ptr<Client> client_;
  thinwire::Step step_;
};

// Seconds of the fastest call of each kind, so that a busy machine's bad moments do not count.
using Fastest = std::map<std::string, double>;

// Times WORK, once per iteration, for 2 * BYTES.
template <typename Work>
void Time(benchmark::State& state, Fastest& fastest, const std::string& name, int64_t bytes,
          const Work& work) {
  SteadyClock clock;
  for (int i = 0; i < kWarmCount; ++i) work();
  for (auto _ : state) {
    const absl::Time begin = clock.Now();
    work();
    const double seconds = absl::ToDoubleSeconds(clock.Now() - begin);
    state.SetIterationTime(seconds);
    const auto [it, first] = fastest.emplace(name, seconds);
    if (!first) it->second = std::min(it->second, seconds);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * 2 * bytes);
}

void TimeWorkers(benchmark::State& state, Fastest& fastest, const std::string& address,
                 uint32_t workers) {
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (uint32_t w = 0; w < workers; ++w) trainers.push_back(std::make_unique<Trainer>(address, w));
  const auto step = [&] {
    std::vector<std::thread> threads;
    for (uint32_t w = 1; w < workers; ++w) threads.emplace_back([&, w] { trainers[w]->Step(); });
    trainers[0]->Step();
    for (std::thread& t : threads) t.join();
  };
  Time(state, fastest, absl::StrCat("workers", workers), workers * kBytes, step);
}

void TimeRaw(benchmark::State& state, Fastest& fastest, const std::string& address) {
  RawStream stream(address, kMessage, kWindow);
  Time(state, fastest, "raw", kBytes, [&] { stream.Exchange(kBytes / kMessage); });
}

void TimeMemcpy(benchmark::State& state, Fastest& fastest) {
  std::vector<char> here(kBytes, 1), there(kBytes, 2);
  Time(state, fastest, "memcpy", kBytes, [&] {
    memcpy(there.data(), here.data(), kBytes);
    benchmark::ClobberMemory();
    memcpy(here.data(), there.data(), kBytes);
    benchmark::ClobberMemory();
  });
}

void Run(int argc, char** argv) {
  // All servers first: a process that has begun to use gRPC must not fork.
  const Child echo(ServeEcho);
  std::vector<std::unique_ptr<Child>> ones, twos;
  for (int r = 0; r < kRounds; ++r) {
    ones.push_back(std::make_unique<Child>([](int to) { ServeJob(to, 1); }));
    twos.push_back(std::make_unique<Child>([](int to) { ServeJob(to, 2); }));
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
    add("raw_slices", [&](benchmark::State& s) { TimeRaw(s, fastest, echo.address()); });
    add("fp32_1worker",
        [&, r](benchmark::State& s) { TimeWorkers(s, fastest, ones[r]->address(), 1); });
    add("fp32_2workers",
        [&, r](benchmark::State& s) { TimeWorkers(s, fastest, twos[r]->address(), 2); });
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  const auto ratio = [&](const char* name, const char* of, double scale, const char* to) {
    if (!fastest.contains(of) || !fastest.contains(to)) return;
    std::printf("ratio wire.%s %.2f\n", name, scale * fastest[to] / fastest[of]);
  };
  ratio("fp32.1worker", "workers1", 1, "raw");
  ratio("fp32.2workers", "workers2", 2, "raw");
  ratio("memcpy", "raw", 1, "memcpy");
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  FLAGS_minloglevel = google::WARNING;
  google::InitGoogleLogging(argv[0]);
  thinwire::Run(argc, argv);
}
