// Tests that a stopped worker's last step empties its residual: the values that real jobs have
// applied and the values that are lost are together the sum of all gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <optional>

#include "client/client.h"
#include "client/options/client_options.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "common/spec/rule.h"
#include "server/core/update/updater.h"
#include "tests/small_cluster.h"

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
  const double residual = *worker.client().ResidualNorm();
  EXPECT_GT(residual, 100);
  EXPECT_EQ(residual, Missing(expected, cluster.Masters()));

  worker.client().Stop();
  EXPECT_TRUE(*worker.client().StartDraining(absl::ZeroDuration()));
  TrainOneMore(worker, step, expected);
  EXPECT_EQ(*worker.client().ResidualNorm(), 0);
  EXPECT_EQ(cluster.Masters(), expected);
  EXPECT_FALSE(*worker.client().StartDraining(absl::ZeroDuration())) << "no residual is left";
  EXPECT_TRUE(worker.client().Leave().ok());
}

TEST(DrainTest, AStepMayBeBegunAgainAsTheLastOne) {
  SmallCluster cluster(Rule::Async(1));
  SmallWorker worker(cluster, 0, TopK());
  Tensors expected = InitialValues();
  const Step step = Train(worker, expected);
  worker.client().BeginStep(step, kExamples);
  worker.client().Stop();
  EXPECT_TRUE(*worker.client().StartDraining(absl::ZeroDuration()));
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
  EXPECT_TRUE(*worker.client().StartDraining(absl::ZeroDuration()));
  TrainOneMore(worker, step, ignored);
  EXPECT_EQ(*worker.client().ResidualNorm(), 0);
}

TEST(DrainTest, AWorkerWithoutTimeKeepsItsResidualAndKnowsItsNorm) {
  SmallCluster cluster(Rule::Async(1));
  SmallWorker worker(cluster, 0, TopK());
  Tensors expected = InitialValues();
  Train(worker, expected);
  worker.client().Stop();
  EXPECT_FALSE(*worker.client().StartDraining(absl::Hours(1)));
  EXPECT_EQ(*worker.client().ResidualNorm(), Missing(expected, cluster.Masters()));
  EXPECT_TRUE(worker.client().Leave().ok());
}

TEST(DrainTest, AWorkerWithoutResidualNeedsNoFurtherStep) {
  SmallCluster cluster(Rule::Async(1));
  SmallWorker worker(cluster, 0);
  Tensors expected = InitialValues();
  Train(worker, expected);
  worker.client().Stop();
  EXPECT_FALSE(*worker.client().StartDraining(absl::ZeroDuration()));
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
  EXPECT_TRUE(*worker.client().StartDraining(absl::ZeroDuration()));
  TrainOneMore(worker, step, expected);
  const double residual = *worker.client().ResidualNorm();
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
  if (*worker.client().StartDraining(absl::ZeroDuration())) {
    const Tensors gradient = Gradient(0, step.value);
    worker.client().BeginStep(step, kExamples);
    for (uint32_t t = 0; t < gradient.size(); ++t) worker.client().Ready(t, gradient[t]);
    EXPECT_EQ(worker.client().NextStep().status().code(), absl::StatusCode::kCancelled);
  }
  EXPECT_GT(*worker.client().ResidualNorm(), 0);
  EXPECT_EQ(worker.client().Leave().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace thinwire
