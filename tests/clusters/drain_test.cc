// Tests that a stopped worker's last step empties its residual, or that workers that stop together
// keep their residuals for the next processes: the values that real jobs have applied, the values
// that are kept and the values that are lost are together the sum of all gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "client/options/client_options.h"
#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/spec/rule.h"
#include "server/core/update/updater.h"
#include "tests/clusters/small_cluster.h"

namespace thinwire {
namespace {

constexpr uint64_t kSteps = 5;

ClientOptions TopK() { return {.push = {.id = CodecId::kTopK, .density = 0.02}}; }

// Pushes steps 0 to kSteps - 1 and returns the next step. Subtracts the gradients from EXPECTED.
Step Train(SmallWorker& worker, Tensors& expected) {
  Step step = worker.Join();
  while (step < Step{kSteps}) {
    const Tensors gradient = Gradient(0, step.value);
    Subtract(expected, kRate, gradient);
    worker.Push(step, gradient);
    step = worker.Next();
  }
  return step;
}

// Pushes the gradient of STEP. Returns the next step.
Step TrainOneMore(SmallWorker& worker, Step step, Tensors& expected) {
  Subtract(expected, kRate, Gradient(0, step.value));
  worker.Push(step, Gradient(0, step.value));
  return worker.Next();
}

// Returns the L1 norm of the gradient values that EXPECTED contains and MASTERS lacks.
double Missing(const Tensors& expected, const Tensors& masters) {
  double norm = 0;
  for (size_t t = 0; t < expected.size(); ++t) {
    for (size_t i = 0; i < expected[t].size(); ++i) {
      norm += std::abs(masters[t][i] - expected[t][i]) / kRate;
    }
  }
  return norm;
}

TEST(DrainTest, TheLastStepAppliesTheWholeResidual) {
  SmallCluster cluster(Rule::Async(1));
  SmallWorker worker(cluster, 0, TopK());
  Tensors expected = InitialValues();
  const Step step = Train(worker, expected);
  const double residual = *worker.client().draining().ResidualNorm();
  EXPECT_GT(residual, 100);
  EXPECT_EQ(residual, Missing(expected, cluster.Masters()));

  worker.client().Stop();
  EXPECT_TRUE(*worker.client().draining().Start(absl::ZeroDuration()));
  TrainOneMore(worker, step, expected);
  EXPECT_EQ(*worker.client().draining().ResidualNorm(), 0);
  EXPECT_EQ(cluster.Masters(), expected);
  EXPECT_FALSE(*worker.client().draining().Start(absl::ZeroDuration())) << "no residual is left";
  EXPECT_TRUE(worker.client().Leave().ok());
}

TEST(DrainTest, AStepMayBeBegunAgainAsTheLastOne) {
  SmallCluster cluster(Rule::Async(1));
  SmallWorker worker(cluster, 0, TopK());
  Tensors expected = InitialValues();
  const Step step = Train(worker, expected);
  worker.client().BeginStep(step, kExamples);
  worker.client().Stop();
  EXPECT_TRUE(*worker.client().draining().Start(absl::ZeroDuration()));
  TrainOneMore(worker, step, expected);
  EXPECT_EQ(cluster.Masters(), expected);
}

TEST(DrainTest, MomentumIsNoPartOfTheResidual) {
  ClientOptions options = TopK();
  options.correction = {.enabled = true, .momentum = 0.5};
  SmallCluster cluster(Rule::Async(1));
  SmallWorker worker(cluster, 0, options);
  Tensors ignored = InitialValues();
  const Step step = Train(worker, ignored);
  worker.client().Stop();
  EXPECT_TRUE(*worker.client().draining().Start(absl::ZeroDuration()));
  TrainOneMore(worker, step, ignored);
  EXPECT_EQ(*worker.client().draining().ResidualNorm(), 0);
}

TEST(DrainTest, AWorkerWithoutTimeKeepsItsResidualAndKnowsItsNorm) {
  SmallCluster cluster(Rule::Async(1));
  SmallWorker worker(cluster, 0, TopK());
  Tensors expected = InitialValues();
  Train(worker, expected);
  worker.client().Stop();
  EXPECT_FALSE(*worker.client().draining().Start(absl::Hours(1)));
  EXPECT_EQ(*worker.client().draining().ResidualNorm(), Missing(expected, cluster.Masters()));
  EXPECT_TRUE(worker.client().Leave().ok());
}

TEST(DrainTest, AWorkerWithoutResidualNeedsNoFurtherStep) {
  SmallCluster cluster(Rule::Async(1));
  SmallWorker worker(cluster, 0);
  Tensors expected = InitialValues();
  Train(worker, expected);
  worker.client().Stop();
  EXPECT_FALSE(*worker.client().draining().Start(absl::ZeroDuration()));
  EXPECT_EQ(cluster.Masters(), expected);
}

// gTop-k applies some values of the last step and returns the others, which are lost.
TEST(DrainTest, ValuesThatAServerReturnsAfterTheLastStepCountAsResidual) {
  SmallCluster cluster(Rule::Sync(1), std::nullopt,
                       {.selection_density = 0.02, .unselected_owner = UnselectedOwner::kWorkers});
  SmallWorker worker(cluster, 0, TopK());
  Tensors expected = InitialValues();
  const Step step = Train(worker, expected);
  worker.client().Stop();
  EXPECT_TRUE(*worker.client().draining().Start(absl::ZeroDuration()));
  TrainOneMore(worker, step, expected);
  const double residual = *worker.client().draining().ResidualNorm();
  EXPECT_GT(residual, 0);
  EXPECT_EQ(residual, Missing(expected, cluster.Masters()));
}

TEST(DrainTest, ADrainingWorkerThatWaitsForALostServerEnds) {
  ClientOptions options = TopK();
  options.drain = absl::Milliseconds(200);
  SmallCluster cluster(Rule::Async(1));
  SmallWorker worker(cluster, 0, options);
  Tensors ignored = InitialValues();
  const Step step = Train(worker, ignored);
  EXPECT_TRUE(worker.client().WaitAll().ok());
  worker.transport().Refuse(ServerId{1}, true);
  worker.client().Stop();
  // On a slow machine, the time may be over already.
  if (*worker.client().draining().Start(absl::ZeroDuration())) {
    const Tensors gradient = Gradient(0, step.value);
    worker.client().BeginStep(step, kExamples);
    for (uint32_t t = 0; t < gradient.size(); ++t) worker.client().Ready(t, gradient[t]);
    EXPECT_EQ(worker.client().NextStep().status().code(), absl::StatusCode::kCancelled);
  }
  EXPECT_GT(*worker.client().draining().ResidualNorm(), 0);
  EXPECT_EQ(worker.client().Leave().code(), absl::StatusCode::kUnavailable);
}

// Workers of one job that are stopped together and started again. Each step of worker w has the
// gradient Gradient(w, step).
class StopTest : public ::testing::Test {
 protected:
  void Start(const Rule& rule) {
    std::filesystem::remove_all(state_dir_);
    cluster_ = std::make_unique<SmallCluster>(rule);
    Restart(rule.workers);
  }

  // Starts new processes of all workers. Returns the steps at which they begin.
  std::vector<Step> Restart(uint32_t count) {
    ClientOptions options = TopK();
    options.state_dir = state_dir_;
    workers_.clear();
    for (uint32_t w = 0; w < count; ++w) {
      workers_.push_back(std::make_unique<SmallWorker>(*cluster_, w, options));
    }
    std::vector<Step> steps;
    for (const auto& worker : workers_) steps.push_back(worker->Join());
    return steps;
  }

  void Push(uint32_t worker, uint64_t step) {
    Subtract(expected_, kRate, Gradient(worker, step));
    workers_[worker]->Push(Step{step}, Gradient(worker, step));
  }

  // Stops all workers at about the same time, and returns the step before which each is to stop.
  std::vector<std::optional<Step>> StopAll() {
    std::vector<std::optional<Step>> stops(workers_.size());
    std::vector<std::thread> threads;
    for (size_t w = 0; w < workers_.size(); ++w) {
      threads.emplace_back([&, w] {
        workers_[w]->client().Stop();
        const auto stop = workers_[w]->client().draining().AwaitCommonStop(absl::Minutes(1));
        EXPECT_TRUE(stop.ok()) << stop.status();
        stops[w] = stop.value_or(std::nullopt);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return stops;
  }

  // Saves the states of all workers and lets them leave. Returns the norms of their residuals.
  std::vector<double> SaveAndLeave() {
    std::vector<double> norms = Norms();
    for (const auto& worker : workers_) {
      EXPECT_TRUE(worker->client().state().Save().ok());
      EXPECT_TRUE(worker->client().Leave().ok());
    }
    return norms;
  }

  std::vector<double> Norms() {
    std::vector<double> norms;
    for (const auto& worker : workers_)
      norms.push_back(*worker->client().draining().ResidualNorm());
    return norms;
  }

  const std::string state_dir_ =
      testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
  std::unique_ptr<SmallCluster> cluster_;
  std::vector<std::unique_ptr<SmallWorker>> workers_;
  Tensors expected_ = InitialValues();
};

TEST_F(StopTest, InSyncAllWorkersStopBeforeTheSameStep) {
  Start(Rule::Sync(2, /*ordered_fold=*/true));
  for (uint64_t step = 0; step < kSteps; ++step) {
    for (const uint32_t w : {0u, 1u}) Push(w, step);
    for (const uint32_t w : {0u, 1u}) EXPECT_EQ(workers_[w]->Next(), Step{step + 1});
  }
  Push(0, kSteps);
  EXPECT_EQ(workers_[0]->Next(), Step{kSteps + 1});
  const std::optional<Step> common = Step{kSteps + 1};
  EXPECT_EQ(StopAll(), (std::vector<std::optional<Step>>{common, common}));
  Push(1, kSteps);
  EXPECT_EQ(workers_[1]->Next(), Step{kSteps + 1});
  const std::vector<double> norms = SaveAndLeave();
  EXPECT_GT(norms[0], 100);
  EXPECT_GT(norms[1], 100);
  Restart(2);
  EXPECT_EQ(Norms(), norms);
}

TEST_F(StopTest, InAsyncNoValueIsLost) {
  Start(Rule::Async(2));
  for (uint64_t step = 0; step < kSteps; ++step) {
    Push(0, step);
    workers_[0]->Next();
    if (step < 2) Push(1, step);
    if (step < 2) workers_[1]->Next();
  }
  EXPECT_EQ(StopAll(), (std::vector<std::optional<Step>>{Step{kSteps}, Step{2}}));
  const std::vector<double> norms = SaveAndLeave();
  const std::vector<Step> steps = Restart(2);
  EXPECT_EQ(Norms(), norms);
  for (const uint32_t w : {0u, 1u}) {
    workers_[w]->client().Stop();
    EXPECT_TRUE(*workers_[w]->client().draining().Start(absl::ZeroDuration()));
    Push(w, steps[w].value);
    workers_[w]->Next();
  }
  // Worker 1 may have joined before a shard's frontier has moved to the step of worker 0. Its push
  // is then late there, and it keeps the values.
  const std::vector<double> kept = Norms();
  EXPECT_EQ(kept[0], 0);
  EXPECT_EQ(Missing(expected_, cluster_->Masters()), kept[1]);
}

TEST_F(StopTest, InBackupALateWorkerKeepsTheValuesOfItsPush) {
  Start(Rule::Backup(3, 1));
  for (const uint32_t w : {0u, 1u, 2u}) EXPECT_TRUE(workers_[w]->client().WaitAll().ok());
  for (const uint32_t w : {0u, 1u}) Push(w, 0);
  for (const uint32_t w : {0u, 1u}) EXPECT_EQ(workers_[w]->Next(), Step{1});
  const std::optional<Step> common = Step{1};
  EXPECT_EQ(StopAll(), (std::vector<std::optional<Step>>{common, common, common}));
  Push(2, 0);
  EXPECT_EQ(workers_[2]->Next(), Step{1});
  EXPECT_GT(workers_[2]->client().counters().late_pushes(), 0u);
  const std::vector<double> norms = SaveAndLeave();
  Restart(3);
  EXPECT_EQ(Norms(), norms);
}

TEST_F(StopTest, AWorkerThatStopsAloneIsToldNoStep) {
  Start(Rule::Sync(2));
  for (const uint32_t w : {0u, 1u}) Push(w, 0);
  for (const uint32_t w : {0u, 1u}) workers_[w]->Next();
  workers_[0]->client().Stop();
  EXPECT_EQ(*workers_[0]->client().draining().AwaitCommonStop(absl::Milliseconds(200)),
            std::nullopt);
}

}  // namespace
}  // namespace thinwire
