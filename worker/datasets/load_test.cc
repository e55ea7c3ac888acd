#include "worker/datasets/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/testing/safetensors_file.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

std::string FreshFolder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/load_" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

// Writes a safetensors file of `examples` examples. Each has `values` zeros; the labels count from
// 0.
void WriteSafetensors(const std::string& path, int examples, int values) {
  const int x_bytes = examples * values * 4;
  const std::string header = R"({"x": {"dtype": "F32", "shape": [)" + std::to_string(examples) +
                             ", " + std::to_string(values) + R"(], "data_offsets": [0, )" +
                             std::to_string(x_bytes) + R"(]}, "y": {"dtype": "U8", "shape": [)" +
                             std::to_string(examples) + R"(], "data_offsets": [)" +
                             std::to_string(x_bytes) + ", " + std::to_string(x_bytes + examples) +
                             "]}}";
  std::string tensors(static_cast<size_t>(x_bytes), '\0');
  for (int i = 0; i < examples; ++i) tensors += static_cast<char>(i);
  std::ofstream(path, std::ios::binary) << SafetensorsFile(header, tensors);
}

TaskSpec SafetensorsTask(const std::string& folder) {
  return {.dataset = DatasetKind::kSafetensors, .data_dir = folder};
}

TEST(LoadTest, TheClassCountCoversBothParts) {
  const std::string folder = FreshFolder("classes");
  WriteSafetensors(folder + "/train.safetensors", 3, 2);
  WriteSafetensors(folder + "/test.safetensors", 5, 2);
  const Datasets datasets = LoadDatasets(SafetensorsTask(folder)).value();
  EXPECT_EQ(datasets.train.class_count, 5);
  EXPECT_EQ(datasets.test.class_count, 5);
}

TEST(LoadTest, TheShapesOfBothPartsMustAgree) {
  const std::string folder = FreshFolder("shapes");
  WriteSafetensors(folder + "/train.safetensors", 3, 2);
  WriteSafetensors(folder + "/test.safetensors", 3, 4);
  EXPECT_THAT(LoadDatasets(SafetensorsTask(folder)).status().message(),
              HasSubstr("x: test and training examples have different forms (expected F32 [2], got "
                        "F32 [4])"));
}

TEST(LoadTest, ExamplesAreTruncatedToTheConfiguredNumber) {
  const std::string folder = FreshFolder("cut");
  WriteSafetensors(folder + "/train.safetensors", 9, 2);
  WriteSafetensors(folder + "/test.safetensors", 5, 2);
  TaskSpec task = SafetensorsTask(folder);
  task.train_examples = 4;
  task.test_examples = 2;
  const Datasets datasets = LoadDatasets(task).value();
  EXPECT_EQ(datasets.train.example_count(), 4);
  EXPECT_EQ(datasets.test.example_count(), 2);
}

TEST(LoadTest, TheHashFollowsTheExamplesOfBothParts) {
  const std::string folder = FreshFolder("hashed");
  WriteSafetensors(folder + "/train.safetensors", 5, 2);
  WriteSafetensors(folder + "/test.safetensors", 3, 2);
  TaskSpec task = SafetensorsTask(folder);
  const uint64_t hash = ContentHash(*LoadDatasets(task));
  EXPECT_EQ(ContentHash(*LoadDatasets(task)), hash);
  EXPECT_NE(hash, 0u);
  task.train_examples = 4;
  EXPECT_NE(ContentHash(*LoadDatasets(task)), hash);
  task.train_examples = 0;
  task.test_examples = 2;
  EXPECT_NE(ContentHash(*LoadDatasets(task)), hash);
}

}  // namespace
}  // namespace thinwire
