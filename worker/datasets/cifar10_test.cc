#include "worker/datasets/cifar10.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string FreshFolder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/cifar10_" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

// Returns a row of a CIFAR-10 file in which all pixels have the same color.
std::string Row(int label, int red, int green, int blue) {
  return std::string(1, static_cast<char>(label)) + std::string(1024, static_cast<char>(red)) +
         std::string(1024, static_cast<char>(green)) + std::string(1024, static_cast<char>(blue));
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(Cifar10Test, TheFiveTrainingFilesAreConcatenated) {
  const std::string folder = FreshFolder("train");
  for (int i = 1; i <= 5; ++i) {
    Write(folder + "/data_batch_" + std::to_string(i) + ".bin",
          Row(i, 0, 0, 0) + Row(i + 1, 255, 128, 64));
  }
  const Dataset dataset = LoadCifar10(folder, Part::kTrain).value();
  EXPECT_THAT(dataset.example_shape, ElementsAre(3, 32, 32));
  EXPECT_THAT(dataset.labels, ElementsAre(1, 2, 2, 3, 3, 4, 4, 5, 5, 6));
  Values values;
  dataset.GatherExamples(std::vector<uint32_t>{9}, values);
  const auto& x = std::get<std::vector<float>>(values);
  ASSERT_EQ(x.size(), 3072);
  EXPECT_NEAR(x[0], (1 - 0.4914) / 0.2470, 1e-5);
  EXPECT_NEAR(x[1024], (128 / 255.0 - 0.4822) / 0.2435, 1e-5);
  EXPECT_NEAR(x[3071], (64 / 255.0 - 0.4465) / 0.2616, 1e-5);
}

TEST(Cifar10Test, TheTestPartHasItsOwnFile) {
  const std::string folder = FreshFolder("test");
  Write(folder + "/test_batch.bin", Row(7, 1, 2, 3));
  EXPECT_THAT(LoadCifar10(folder, Part::kTest).value().labels, ElementsAre(7));
}

TEST(Cifar10Test, AMissingFileIsNamed) {
  const std::string folder = FreshFolder("missing");
  Write(folder + "/data_batch_1.bin", Row(0, 0, 0, 0));
  const auto dataset = LoadCifar10(folder, Part::kTrain);
  EXPECT_TRUE(absl::IsNotFound(dataset.status()));
  EXPECT_THAT(dataset.status().message(), HasSubstr(folder + "/data_batch_2.bin"));
}

TEST(Cifar10Test, AShortRowIsRefused) {
  const std::string folder = FreshFolder("short");
  Write(folder + "/test_batch.bin", Row(0, 0, 0, 0).substr(1));
  EXPECT_THAT(LoadCifar10(folder, Part::kTest).status().message(),
              HasSubstr("expected a multiple of 3073 bytes, got 3072"));
  Write(folder + "/test_batch.bin", "");
  EXPECT_TRUE(absl::IsInvalidArgument(LoadCifar10(folder, Part::kTest).status()));
}

TEST(Cifar10Test, ALabelOutOfRangeIsRefused) {
  const std::string folder = FreshFolder("label");
  Write(folder + "/test_batch.bin", Row(3, 0, 0, 0) + Row(10, 0, 0, 0));
  EXPECT_THAT(LoadCifar10(folder, Part::kTest).status().message(),
              HasSubstr("label of row 1: out of range (expected 0 to 9, got 10)"));
}

}  // namespace
}  // namespace thinwire
