// Measures the cost of posting a task through Executor, relative to boost::asio, and the cost of
// the types that a task can have.
//
//   ratio executor.thread 0.60   a ThreadExecutor relative to a boost::asio::thread_pool of one thread
//   ratio executor.pool 0.80     an executor of a ThreadPool relative to a strand, two threads
//   ratio executor.wake 1.00     as executor.thread, but each task is posted when the last has run
//   ratio executor.task 1.00     an Executor::Task relative to a std::function
//
// Each ratio is from one run. The tasks capture as much as those of a client that pushes a tensor.
#include "common/time/executor.h"

#include <benchmark/benchmark.h>

#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "bench/fastest.h"
#include "common/time/clock.h"
#include "common/time/thread_executor.h"
#include "common/time/thread_pool.h"

namespace thinwire {
namespace {

constexpr int kTasks = 10'000;

// The values that a task of the client's executor captures.
struct Captured {
  uint64_t* sum;
  uint32_t tensor;
  std::span<const float> gradient;
  std::shared_ptr<const void> owner;
};

// Calls POST with COUNT tasks and blocks until all have run.
template <typename Post>
void PostAll(int count, const Post& post) {
  uint64_t sum = 0;
  const auto owner = std::make_shared<int>();
  for (int i = 1; i < count; ++i) {
    post([c = Captured{&sum, static_cast<uint32_t>(i), {}, owner}] { *c.sum += c.tensor; });
  }
  absl::BlockingCounter last(1);
  post([&last] { last.DecrementCount(); });
  last.Wait();
  benchmark::DoNotOptimize(sum);
}

template <typename Post>
void MeasurePosts(benchmark::State& state, const Post& post) {
  MeasureFastest(state, [&] { PostAll(kTasks, post); });
}

template <typename Post>
void MeasureWakes(benchmark::State& state, const Post& post) {
  MeasureFastest(state, [&] {
    for (int i = 0; i < 100; ++i) PostAll(1, post);
  });
}

auto PostTo(Executor& executor) {
  return [&executor](auto task) { executor.Post(std::move(task)); };
}

template <typename AsioExecutor>
auto PostToAsio(AsioExecutor executor) {
  return [executor](auto task) { boost::asio::post(executor, std::move(task)); };
}

void Thread(benchmark::State& state) {
  SteadyClock clock;
  ThreadExecutor executor(clock);
  MeasurePosts(state, PostTo(executor));
}

void AsioThread(benchmark::State& state) {
  boost::asio::thread_pool pool(1);
  MeasurePosts(state, PostToAsio(pool.get_executor()));
}

void Pool(benchmark::State& state) {
  ThreadPool pool(2);
  const std::unique_ptr<Executor> executor = pool.Make();
  MeasurePosts(state, PostTo(*executor));
}

void AsioStrand(benchmark::State& state) {
  boost::asio::thread_pool pool(2);
  MeasurePosts(state, PostToAsio(boost::asio::make_strand(pool)));
}

void ThreadWake(benchmark::State& state) {
  SteadyClock clock;
  ThreadExecutor executor(clock);
  MeasureWakes(state, PostTo(executor));
}

void AsioThreadWake(benchmark::State& state) {
  boost::asio::thread_pool pool(1);
  MeasureWakes(state, PostToAsio(pool.get_executor()));
}

// Makes tasks of type T, moves them as a queue does, and calls them.
template <typename T>
void MeasureTask(benchmark::State& state) {
  std::vector<T> tasks;
  MeasurePosts(state, [&tasks](auto task) {
    tasks.push_back(T(std::move(task)));
    if (tasks.size() < 100 && sizeof(task) == sizeof(Captured)) return;
    for (T& queued : tasks) std::exchange(queued, nullptr)();
    tasks.clear();
  });
}

void StdFunction(benchmark::State& state) { MeasureTask<std::function<void()>>(state); }
void TaskType(benchmark::State& state) { MeasureTask<Executor::Task>(state); }

BENCHMARK(Thread)->UseRealTime();
BENCHMARK(AsioThread)->UseRealTime();
BENCHMARK(Pool)->UseRealTime();
BENCHMARK(AsioStrand)->UseRealTime();
BENCHMARK(ThreadWake)->UseRealTime();
BENCHMARK(AsioThreadWake)->UseRealTime();
BENCHMARK(StdFunction);
BENCHMARK(TaskType);

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  if (!thinwire::InitializeBenchmarks(argc, argv)) return 1;
  thinwire::FastestReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.PrintRatio("executor.thread", "Thread", "AsioThread");
  reporter.PrintRatio("executor.pool", "Pool", "AsioStrand");
  reporter.PrintRatio("executor.wake", "ThreadWake", "AsioThreadWake");
  reporter.PrintRatio("executor.task", "TaskType", "StdFunction");
  for (const char* name :
       {"Thread", "AsioThread", "Pool", "AsioStrand", "TaskType", "StdFunction"}) {
    reporter.PrintNanosecondsEach(name, thinwire::kTasks);
  }
}
