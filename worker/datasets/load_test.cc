#include "worker/datasets/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

std::string FreshFolder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/load_" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

// Writes `examples` examples of `values` zeros with labels 0, 1, ...
void WriteSafetensors(const std::string& path, int examples, int values) {
  const int x_bytes = examples * values * 4;
  std::string header = R"({"x": {"dtype": "F32", "shape": [)" + std::to_string(examples) + ", " +
                       std::to_string(values) + R"(], "data_offsets": [0, )" +
                       std::to_string(x_bytes) + R"(]}, "y": {"dtype": "U8", "shape": [)" +
                       std::to_string(examples) + R"(], "data_offsets": [)" +
                       std::to_string(x_bytes) + ", " + std::to_string(x_bytes + examples) + "]}}";
  uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  bytes += header + std::string(static_cast<size_t>(x_bytes), '\0');
  for (int i = 0; i < examples; ++i) bytes += static_cast<char>(i);
  std::ofstream(path, std::ios::binary) << bytes;
}

Task SafetensorsTask(const std::string& folder) {
  Task task;
  task.set_dataset("safetensors");
  task.set_data_dir(folder);
  return task;
}

TEST(LoadTest, AnUnknownDatasetIsRefusedWithTheListOfDatasets) {
  Task task;
  task.set_dataset("mnist");
  EXPECT_THAT(LoadDatasets(task).status().message(),
              HasSubstr("want fashion_mnist, cifar10 or safetensors, got \"mnist\""));
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
              HasSubstr("(expected [2], got [4])"));
}

TEST(LoadTest, ExamplesAreTruncatedToTheConfiguredNumber) {
  const std::string folder = FreshFolder("cut");
  WriteSafetensors(folder + "/train.safetensors", 9, 2);
  WriteSafetensors(folder + "/test.safetensors", 5, 2);
  Task task = SafetensorsTask(folder);
  task.set_train_examples(4);
  task.set_test_examples(2);
  const Datasets datasets = LoadDatasets(task).value();
  EXPECT_EQ(datasets.train.example_count(), 4);
  EXPECT_EQ(datasets.test.example_count(), 2);
}

}  // namespace
}  // namespace thinwire
