#include "tests/goldens/golden_job.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/time/time.h"
#include "client/options/job_client_options.h"
#include "common/files/crc32c.h"
#include "config/job.h"
#include "config/job_text.h"
#include "config/recipes.h"

namespace thinwire {
namespace {

constexpr uint32_t kExamples = 8;  // of one push

// Adds 1 to a gradient that differs between workers, steps and values, and lies within -1 and 1.
class Noise {
 public:
  Noise(WorkerId worker, Step step) : state_((uint64_t{worker.value} << 32) + step.value) {
    for (int i = 0; i < 4; ++i) Next();  // similar seeds begin with similar numbers
  }
  float Next() {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<float>(state_ >> 40) * 0x1p-23f - 1;
  }

 private:
  uint64_t state_;
};

}  // namespace

JobSpec GoldenSpec(const std::string& text) {
  auto parsed = ParseJobText(text, "job");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  if (!parsed.ok()) return {};
  ExpandRecipe(parsed->config, parsed->places);
  const auto spec = CheckJob(parsed->config, parsed->places);
  EXPECT_TRUE(spec.ok()) << spec.status() << "\n" << text;
  return spec.ok() ? *spec : JobSpec();
}

std::vector<TensorShape> GoldenTensors(int64_t rows) {
  return {{"w", {rows, 80}}, {"b", {20}}, {"conv.w", {8, 5, 3}}, {"conv.b", {8}}};
}

uint32_t ParametersCrc(std::span<const std::vector<float>> tensors) {
  uint32_t crc = 0;
  for (const std::vector<float>& values : tensors) {
    crc = Crc32c(std::as_bytes(std::span(values)), crc);
  }
  return crc;
}

GoldenWorker::GoldenWorker(const JobSpec& spec, const std::vector<TensorShape>& tensors,
                           WorkerId worker, Transport& transport, const std::string& state_dir)
    : worker_(worker), tensors_(tensors) {
  ClientOptions options = MakeClientOptions(
      spec, {.worker = worker,
             .planned_examples = kExamples * spec.rule.workers * kGoldenSteps.value,
             .planned_steps = kGoldenSteps.value,
             .state_dir = state_dir});
  options.silence = absl::Minutes(2);
  auto client = Client::Make(options, tensors_, transport, threads_);
  EXPECT_TRUE(client.ok()) << client.status();
  client_ = *std::move(client);
  for (const TensorShape& tensor : tensors_) gradient_.emplace_back(tensor.value_count());
}

void GoldenWorker::Join() {
  std::vector<std::vector<float>> initial;
  for (const TensorShape& tensor : tensors_) {
    std::vector<float>& values = initial.emplace_back(tensor.value_count());
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.25f * static_cast<float>(i % 13);
  }
  const std::vector<std::span<const float>> spans(initial.begin(), initial.end());
  const absl::StatusOr<Step> step = client_->Join(spans);
  ASSERT_TRUE(step.ok()) << step.status();
  step_ = *step;
}

void GoldenWorker::Read() {
  const absl::Status status = client_->WaitAll();
  ASSERT_TRUE(status.ok()) << status;
  Noise noise(worker_, step_);
  for (uint32_t t = 0; t < gradient_.size(); ++t) {
    const std::span<const float> parameters = client_->replica(t);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const float minimum = static_cast<float>(i % 7) - 3;
      gradient_[t][i] = parameters[i] - minimum + noise.Next();
    }
  }
}

void GoldenWorker::Push() {
  client_->BeginStep(step_, kExamples);
  for (uint32_t t = gradient_.size(); t-- > 0;) client_->Ready(t, gradient_[t]);
  const absl::Status status = client_->EndStep();
  ASSERT_TRUE(status.ok()) << status;
  const absl::StatusOr<Step> next = client_->NextStep();
  ASSERT_TRUE(next.ok()) << next.status();
  step_ = *next;
}

void TrainInOrder(const JobSpec& spec, const GoldenWorkers& workers, Step last) {
  const bool by_round = spec.rule.fold == Fold::kRound;
  for (const auto& worker : workers) worker->Read();
  while (workers.front()->step() < last && !testing::Test::HasFatalFailure()) {
    for (const auto& worker : workers) {
      worker->Push();
      if (!by_round) worker->Read();
    }
    if (!by_round) continue;
    for (const auto& worker : workers) worker->Read();
  }
  for (const auto& worker : workers) EXPECT_EQ(worker->step(), last);
}

}  // namespace thinwire
