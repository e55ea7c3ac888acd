// Tests sites: real clients and the jobs of their aggregators, whose relays are workers of the real
// servers of the upper job, in one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/client.h"
#include "client/testing/in_process_transport.h"
#include "common/spec/job_spec.h"
#include "common/spec/rule.h"
#include "common/time/thread_executor.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/job/job.h"
#include "server/job/job_threads.h"
#include "server/site/site_relay.h"
#include "tests/clusters/job_server.h"
#include "tests/clusters/small_cluster.h"

namespace thinwire {
namespace {

// The servers of CLUSTER as one transport of a worker.
class ClusterTransport final {
 public:
  explicit ClusterTransport(SmallCluster& cluster) {
    for (uint32_t s = 0; s < kServers; ++s) {
      servers_.push_back(std::make_unique<JobServer>(cluster.job(s)));
    }
  }
  std::unique_ptr<Transport> Make() {
    std::vector<InProcessServer*> servers;
    for (const auto& server : servers_) servers.push_back(server.get());
    return std::make_unique<InProcessTransport>(std::move(servers));
  }

 private:
  std::vector<std::unique_ptr<JobServer>> servers_;
};

// An aggregator with WORKERS workers, which is worker NUMBER of CLUSTER. Every error is a test failure.
class Site {
 public:
  Site(SmallCluster& cluster, uint32_t number, uint32_t workers, CodecSpec push = {})
      : upper_(cluster) {
    SiteRelay::Options options;
    options.job.server_count = kServers;
    options.job.rule = Rule::Sync(2);
    options.job.shard_size = kLeastShardSize;
    options.job.push.codec = push;
    options.job.lease = absl::Milliseconds(100);
    options.worker = WorkerId{number};
    options.site_workers = workers;
    relay_ = std::make_unique<SiteRelay>(
        std::move(options),
        SiteRelay::Parts{.make_transport = [this] { return upper_.Make(); },
                         .failed = [](const absl::Status& status) { ADD_FAILURE() << status; },
                         .ended = [this](const Departure& departure) { SetEnd(departure); },
                         .retired = [] {}},
        threads_);
    JobOptions job;
    job.rule = Rule::Sync(workers);
    job.lease = kLease;
    job.epoch = Epoch{1};
    job.relay = relay_.get();
    job.group_updates = {{*MakeOptimizer({}), *Schedule::Make({})}};
    job_ = std::make_unique<Job>(std::move(job), clock_, job_threads_.executors());
    for (uint32_t w = 0; w < workers; ++w) Start(w);
  }
  ~Site() {
    workers_.clear();
    relay_->Stop();
    job_.reset();
  }

  Client& client(uint32_t worker) { return *workers_[worker]->client; }
  // Starts a new process of WORKER.
  void Start(uint32_t worker) {
    if (workers_.size() <= worker) workers_.resize(worker + 1);
    workers_[worker] = std::make_unique<SiteWorker>(*job_);
    ClientOptions options;
    options.worker = WorkerId{worker};
    options.silence = absl::Minutes(2);
    options.heartbeat_interval = absl::Milliseconds(20);
    workers_[worker]->client = *Client::Make(options, SmallModel(), workers_[worker]->transport,
                                             workers_[worker]->threads);
  }
  Step Join(uint32_t worker) {
    const Tensors initial = InitialValues();
    const std::vector<std::span<const float>> spans(initial.begin(), initial.end());
    const absl::StatusOr<Step> step = client(worker).Join(spans);
    EXPECT_TRUE(step.ok()) << step.status();
    return *step;
  }
  // WORKER pushes GRADIENT with EXAMPLES, and has the parameters of the next step.
  Step Run(uint32_t worker, Step step, uint32_t examples, const Tensors& gradient) {
    Client& own = client(worker);
    own.BeginStep(step, examples);
    EXPECT_TRUE(own.WaitAll().ok());
    for (uint32_t t = 0; t < gradient.size(); ++t) own.Ready(t, gradient[t]);
    EXPECT_TRUE(own.EndStep().ok());
    const absl::StatusOr<Step> next = own.NextStep();
    EXPECT_TRUE(next.ok()) << next.status();
    EXPECT_TRUE(own.WaitAll().ok());
    return next.value_or(Step{1000});
  }
  Tensors Parameters(uint32_t worker) {
    Tensors parameters;
    for (uint32_t t = 0; t < SmallModel().size(); ++t) {
      const std::span<float> values = client(worker).replica(t);
      parameters.emplace_back(values.begin(), values.end());
    }
    return parameters;
  }
  void Tick() {
    absl::Notification ticked;
    job_->Tick([&] { ticked.Notify(); });
    ticked.WaitForNotification();
  }
  // Blocks until the run of the site has ended, and returns why.
  Departure AwaitEnd() {
    absl::MutexLock lock(&mu_, absl::Condition(&has_ended_));
    return end_;
  }

 private:
  struct SiteWorker {
    explicit SiteWorker(Job& job) : server(job) {}
    JobServer server;
    InProcessTransport transport{{&server}};
    Threads threads;
    std::unique_ptr<Client> client;
  };

  void SetEnd(const Departure& departure) {
    absl::MutexLock lock(&mu_);
    end_ = departure;
    has_ended_ = true;
  }

  absl::Mutex mu_;
  bool has_ended_ = false;
  Departure end_;
  ManualClock clock_;
  Threads threads_;
  JobThreads job_threads_{2};
  ClusterTransport upper_;
  std::unique_ptr<SiteRelay> relay_;
  std::unique_ptr<Job> job_;
  std::vector<std::unique_ptr<SiteWorker>> workers_;
};

// Returns the largest difference of a value in relation to its magnitude, or to 1.
double Difference(const Tensors& a, const Tensors& b) {
  double largest = 0;
  for (size_t t = 0; t < a.size(); ++t) {
    for (size_t i = 0; i < a[t].size(); ++i) {
      const double scale = std::max(1.0, std::abs(double{b[t][i]}));
      largest = std::max(largest, std::abs(double{a[t][i]} - double{b[t][i]}) / scale);
    }
  }
  return largest;
}

// The batches of the workers have different sizes.
uint32_t ExamplesOf(uint32_t worker) { return 3 + 5 * worker; }

TEST(SitesTest, TwoSitesOfTwoWorkersTrainAsAJobOfFour) {
  static constexpr Step kLast{6};
  SmallCluster flat(Rule::Sync(4));
  {
    std::vector<std::thread> threads;
    for (uint32_t w = 0; w < 4; ++w) {
      threads.emplace_back([&flat, w] {
        SmallWorker worker(flat, w);
        for (Step step = worker.Join(); step < kLast; step = worker.Next()) {
          worker.client().BeginStep(step, ExamplesOf(w));
          EXPECT_TRUE(worker.client().WaitAll().ok());
          const Tensors gradient = Gradient(w, step.value);
          for (uint32_t t = 0; t < gradient.size(); ++t) worker.client().Ready(t, gradient[t]);
          EXPECT_TRUE(worker.client().EndStep().ok());
        }
        EXPECT_TRUE(worker.client().Leave().ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  SmallCluster upper(Rule::Sync(2));
  Site sites[] = {{upper, 0, 2}, {upper, 1, 2}};
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < 4; ++w) {
    threads.emplace_back([&, w] {
      // As in worker/batches/sampler.h.
      Site& site = sites[w % 2];
      const uint32_t number = w / 2;
      Step step = site.Join(number);
      EXPECT_EQ(step, Step{0});
      while (step < kLast) {
        step = site.Run(number, step, ExamplesOf(w), Gradient(w, step.value));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Tensors expected = flat.Masters();
  EXPECT_GT(Difference(expected, InitialValues()), 0.1);
  EXPECT_LE(Difference(upper.Masters(), expected), 1e-6);
  for (Site& site : sites) {
    for (uint32_t w = 0; w < 2; ++w) EXPECT_EQ(site.Parameters(w), upper.Masters());
    site.Tick();
    for (uint32_t w = 0; w < 2; ++w) {
      EXPECT_TRUE(site.client(w).Leave({.finished = true}).ok());
    }
    site.Tick();
    EXPECT_TRUE(site.AwaitEnd().finished);
  }
}

// The first steps push only the largest values. The residual of the relay keeps the others.
TEST(SitesTest, TheRelayKeepsTheCodecErrors) {
  SmallCluster upper(Rule::Sync(1));
  Site site(upper, 0, 1, {.id = CodecId::kTopK, .density = 0.25});
  Step step = site.Join(0);
  step = site.Run(0, step, 16, Gradient(0, 0));
  Tensors first = InitialValues();
  Subtract(first, kRate, Gradient(0, 0));
  EXPECT_GT(Difference(upper.Masters(), first), 0.1) << "a part of the gradient is in the residual";
  for (int i = 0; i < 12; ++i) step = site.Run(0, step, 16, Zeros());
  EXPECT_LE(Difference(upper.Masters(), first), 1e-6);
}

TEST(SitesTest, TheUpperJobDoesNotWaitForASiteWithoutWorkers) {
  SmallCluster upper(Rule::Sync(2));
  Site first(upper, 0, 1);
  Site second(upper, 1, 1);
  Step step;
  {
    std::thread joining([&] { EXPECT_EQ(second.Join(0), Step{0}); });
    step = first.Join(0);
    joining.join();
  }
  {
    std::thread running([&] { second.Run(0, Step{0}, 16, Gradient(1, 0)); });
    step = first.Run(0, step, 16, Gradient(0, 0));
    running.join();
  }
  second.Tick();
  EXPECT_TRUE(second.client(0).Leave().ok());
  second.Tick();
  Tensors expected = InitialValues();
  Subtract(expected, kRate / 2, Gradient(0, 0));
  Subtract(expected, kRate / 2, Gradient(1, 0));
  step = first.Run(0, step, 16, Gradient(0, 1));
  Subtract(expected, kRate, Gradient(0, 1));
  EXPECT_EQ(upper.Masters(), expected);

  // A new worker brings the site back.
  second.Start(0);
  absl::Notification ended;
  std::thread returning([&] {
    Step own = second.Join(0);
    own = second.Run(0, own, 16, Gradient(1, 1));
    EXPECT_EQ(second.Parameters(0), upper.Masters());
    second.Run(0, own, 16, Gradient(1, 2));
    second.Tick();
    EXPECT_TRUE(second.client(0).Leave().ok());
    second.Tick();
    ended.Notify();
  });
  while (!ended.HasBeenNotified()) step = first.Run(0, step, 16, Zeros());
  returning.join();
  for (const uint64_t pushed : {1, 2}) Subtract(expected, kRate / 2, Gradient(1, pushed));
  EXPECT_EQ(upper.Masters(), expected);
}

}  // namespace
}  // namespace thinwire
