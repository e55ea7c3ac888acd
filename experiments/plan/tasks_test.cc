#include "experiments/plan/tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/testing/safetensors_file.h"
#include "config/job.h"
#include "config/job_text.h"
#include "experiments/cluster/task_pool.h"
#include "worker/batches/batch_buffer.h"
#include "worker/batches/sampler.h"
#include "worker/models/factory.h"

namespace thinwire::lab {
namespace {

using ::testing::HasSubstr;

constexpr int kExamples = 50;

using Gradients = std::vector<std::vector<float>>;

std::vector<std::span<float>> SpansOf(Gradients& tensors) {
  return {tensors.begin(), tensors.end()};
}

// Writes a dataset of images of 3 x 8 x 8 values in two classes.
void WritePart(const std::string& path, int count) {
  const int values = 3 * 8 * 8;
  std::vector<float> x;
  std::vector<int64_t> y;
  for (int i = 0; i < count; ++i) {
    y.push_back(i % 2);
    for (int k = 0; k < values; ++k) {
      x.push_back(static_cast<float>((i * 7 + k * 13) % 29) / 29 + static_cast<float>(i % 2));
    }
  }
  const size_t x_bytes = x.size() * sizeof(float);
  const std::string header =
      absl::StrCat(R"({"x":{"dtype":"F32","shape":[)", count, R"(,3,8,8],"data_offsets":[0,)",
                   x_bytes, R"(]},"y":{"dtype":"I64","shape":[)", count, R"(],"data_offsets":[)",
                   x_bytes, ",", x_bytes + y.size() * sizeof(int64_t), "]}}");
  std::ofstream(path, std::ios::binary) << SafetensorsFile(header, ValueBytes(x) + ValueBytes(y));
}

class TasksTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    UseThreads(1);
    WritePart(testing::TempDir() + "/train.safetensors", kExamples);
    WritePart(testing::TempDir() + "/test.safetensors", 10);
  }

  RunSpec Spec(const std::string& task) {
    const auto text = ParseJobText(
        absl::StrCat("consistency { workers: 3 } task { dataset: safetensors batch_size: 4 ",
                     "epochs: 2 seed: 3 data_dir: '", testing::TempDir(), "' ", task, " }"),
        "test");
    EXPECT_TRUE(text.ok()) << text.status();
    RunSpec spec;
    spec.config = text->config;
    spec.job = *CheckJob(text->config);
    return spec;
  }

  std::unique_ptr<LearningTask> Task(const RunSpec& spec) {
    const auto make = source_.TasksOf(spec);
    EXPECT_TRUE(make.ok()) << make.status();
    return *(*make)();
  }

  // Computes a gradient with the parts of a worker process, as worker/main.cc puts them together.
  Gradients WorkersGradient(const TaskSpec& task, uint32_t worker, Step step,
                            Gradients& parameters) {
    const Datasets datasets = *LoadDatasets(task);
    const auto model = *MakeModel(task, FormOf(datasets.train));
    Sampler sampler({.example_count = datasets.train.example_count(),
                     .worker = WorkerId{worker},
                     .workers = 3,
                     .batch_size = task.batch_size,
                     .batch_count = static_cast<uint32_t>(task.step_passes()),
                     .seed = task.seed});
    BatchBuffer batches(datasets.train);
    for (uint32_t i = 0; i < parameters.size(); ++i) {
      model->Bind(i, parameters[i], Model::Place::kHost);
    }
    Batch batch = batches.Gather(sampler.Batch(step));
    batch.random_seed = sampler.RandomSeed(step);
    batch.part_size = task.batch_size;
    Gradients gradients(parameters.size());
    EXPECT_TRUE(model
                    ->Train(
                        batch, 1, [](uint32_t) { return absl::OkStatus(); },
                        [&](uint32_t i, const TensorGradient& gradient) {
                          gradients[i].assign(gradient.values.begin(), gradient.values.end());
                        })
                    .ok());
    return gradients;
  }

  TaskSource source_;
};

Gradients InitialOf(const LearningTask& task) {
  Gradients values;
  for (uint32_t i = 0; i < task.tensors().size(); ++i) {
    values.emplace_back(task.initial(i).begin(), task.initial(i).end());
  }
  return values;
}

Gradients GradientOf(LearningTask& task, uint32_t worker, Step step, Gradients& parameters) {
  Gradients gradients = parameters;
  EXPECT_TRUE(
      task.Gradient(WorkerId{worker}, step, 0, SpansOf(parameters), SpansOf(gradients)).ok());
  return gradients;
}

TEST_F(TasksTest, AGradientIsBitEqualToThatOfAWorker) {
  for (const char* model : {"softmax", "mlp", "resnet20"}) {
    const RunSpec spec = Spec(absl::StrCat("model: ", model));
    const auto task = Task(spec);
    Gradients parameters = InitialOf(*task);
    int compared = 0;
    for (const auto& [worker, step] : std::vector<std::pair<uint32_t, uint64_t>>{
             {0, 0}, {2, 3}, {1, 6}, {2, 3}}) {  // the last one again, after others
      const Gradients got = GradientOf(*task, worker, Step{step}, parameters);
      EXPECT_EQ(got, WorkersGradient(spec.job.task, worker, Step{step}, parameters))
          << model << ", worker " << worker << ", step " << step;
      ++compared;
    }
    EXPECT_EQ(compared, 4);
  }
}

TEST_F(TasksTest, AnAccumulatedGradientIsBitEqualToThatOfAWorker) {
  const RunSpec spec = Spec("model: mlp accumulate: 3");
  const auto task = Task(spec);
  EXPECT_EQ(task->steps(), 2u * 2);  // 17 examples of worker 0 in steps of 12
  EXPECT_EQ(task->pass_count(WorkerId{0}, Step{0}), 3u);
  EXPECT_EQ(task->pass_count(WorkerId{0}, Step{1}), 2u);
  Gradients parameters = InitialOf(*task);
  for (const uint64_t step : {0, 1}) {
    EXPECT_EQ(GradientOf(*task, 0, Step{step}, parameters),
              WorkersGradient(spec.job.task, 0, Step{step}, parameters));
  }
}

TEST_F(TasksTest, LocalStepsTakeTheExamplesOfAsManySteps) {
  const auto one = Task(Spec("model: mlp"));
  const auto three = Task(Spec("model: mlp local_steps: 3"));
  EXPECT_EQ(three->steps(), 2u * 2);
  EXPECT_EQ(three->pass_count(WorkerId{0}, Step{1}), 2u);
  Gradients parameters = InitialOf(*one);
  int compared = 0;
  for (const uint32_t local_step : {0, 1, 2}) {
    Gradients gradients = parameters;
    const auto result =
        three->Gradient(WorkerId{1}, Step{0}, local_step, SpansOf(parameters), SpansOf(gradients));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->examples, 4u);
    EXPECT_EQ(gradients, GradientOf(*one, 1, Step{local_step}, parameters));
    ++compared;
  }
  EXPECT_EQ(compared, 3);
  Gradients gradients = parameters;
  EXPECT_EQ(
      three->Gradient(WorkerId{0}, Step{1}, 2, SpansOf(parameters), SpansOf(gradients))->examples,
      0u);
}

TEST_F(TasksTest, TheThreadDoesNotChangeAGradient) {
  const RunSpec spec = Spec("model: resnet20");
  const auto make = *source_.TasksOf(spec);
  const auto pool = *TaskPool::Make(make, /*threads=*/3);
  Gradients parameters = InitialOf(pool->own());
  const Gradients expected = GradientOf(pool->own(), 1, Step{2}, parameters);
  std::vector<std::future<Gradients>> futures;
  for (int i = 0; i < 12; ++i) {
    futures.push_back(pool->Submit<Gradients>([&](LearningTask& task) {
      Gradients own = parameters;
      return GradientOf(task, 1, Step{2}, own);
    }));
  }
  for (auto& future : futures) EXPECT_EQ(future.get(), expected);
}

TEST_F(TasksTest, StepsAndExamplesAreThoseOfTheJob) {
  const auto task = Task(Spec("model: softmax"));
  EXPECT_EQ(task->examples(), 2u * kExamples);
  EXPECT_EQ(task->steps(), 2u * 5);  // 17 examples of worker 0 in batches of 4
  Gradients parameters = InitialOf(*task);
  uint64_t examples = 0;
  for (uint32_t worker = 0; worker < 3; ++worker) {
    for (Step step; step.value < task->steps(); ++step) {
      Gradients gradients = parameters;
      const auto result =
          task->Gradient(WorkerId{worker}, step, 0, SpansOf(parameters), SpansOf(gradients));
      ASSERT_TRUE(result.ok()) << result.status();
      examples += result->examples;
    }
  }
  EXPECT_EQ(examples, 2u * kExamples);
}

TEST_F(TasksTest, ATestDoesNotDependOnEarlierGradients) {
  const RunSpec spec = Spec("model: resnet20");
  const auto task = Task(spec);
  Gradients parameters = InitialOf(*task);
  const TestScore before = *task->Test(SpansOf(parameters));
  Gradients other = parameters;
  for (auto& tensor : other) std::ranges::fill(tensor, 0.25f);
  GradientOf(*task, 2, Step{1}, other);
  const TestScore after = *task->Test(SpansOf(parameters));
  EXPECT_EQ(after.loss, before.loss);
  EXPECT_EQ(after.accuracy, before.accuracy);
  EXPECT_GT(before.loss, 0);
}

TEST_F(TasksTest, RunsShareADataset) {
  const RunSpec one = Spec("model: softmax");
  const RunSpec two = Spec("model: mlp");
  ASSERT_TRUE(source_.TasksOf(one).ok());
  std::filesystem::rename(testing::TempDir() + "/train.safetensors",
                          testing::TempDir() + "/moved.safetensors");
  EXPECT_TRUE(source_.TasksOf(two).ok());
  EXPECT_FALSE(source_.TasksOf(Spec("model: softmax train_examples: 9")).ok());
  std::filesystem::rename(testing::TempDir() + "/moved.safetensors",
                          testing::TempDir() + "/train.safetensors");
}

TEST_F(TasksTest, OtherPrecisionsAreRefused) {
  const auto bf16 = source_.TasksOf(Spec("model: softmax precision: bf16"));
  EXPECT_THAT(std::string(bf16.status().message()),
              HasSubstr("precision: not supported in an experiment (expected fp32, got bf16)"));
  const auto device = source_.TasksOf(Spec("model: softmax device: 'cuda:0'"));
  EXPECT_THAT(std::string(device.status().message()),
              HasSubstr("device: not supported in an experiment (expected cpu, got cuda:0)"));
}

TEST_F(TasksTest, MachinesCanReplaceTheTask) {
  RunSpec spec = Spec("model: softmax");
  spec.job.task.data_dir = "/absent";
  spec.machines.mutable_synthetic()->set_values(12);
  const auto task = Task(spec);
  EXPECT_EQ(task->tensors()[0].value_count(), 12u);
  EXPECT_EQ(*source_.ContentHashOf(spec), 0u);
  EXPECT_NE(*source_.ContentHashOf(Spec("model: softmax")), 0u);
}

}  // namespace
}  // namespace thinwire::lab
