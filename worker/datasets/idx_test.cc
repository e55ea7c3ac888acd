#include "worker/datasets/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <string>
#include <vector>

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<uint8_t> Idx(std::vector<uint32_t> shape, std::vector<uint8_t> values) {
  std::vector<uint8_t> file = {0, 0, 8, static_cast<uint8_t>(shape.size())};
  for (uint32_t d : shape) {
    for (int shift : {24, 16, 8, 0}) file.push_back(static_cast<uint8_t>(d >> shift));
  }
  file.insert(file.end(), values.begin(), values.end());
  return file;
}

std::string FreshFolder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/idx_" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

void WriteGzip(const std::string& path, const std::vector<uint8_t>& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

TEST(IdxTest, ImagesAndLabelsAreLoaded) {
  const std::string folder = FreshFolder("whole");
  WriteGzip(folder + "/train-images-idx3-ubyte.gz",
            Idx({3, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 255, 255, 255, 255}));
  WriteGzip(folder + "/train-labels-idx1-ubyte.gz", Idx({3}, {9, 0, 4}));
  const Dataset dataset = LoadFashionMnist(folder, Part::kTrain).value();
  EXPECT_THAT(dataset.example_shape, ElementsAre(1, 2, 2));
  EXPECT_THAT(dataset.labels, ElementsAre(9, 0, 4));
  EXPECT_EQ(dataset.class_count, 10);
  Values x;
  dataset.GatherExamples(std::vector<uint32_t>{2}, x);
  EXPECT_NEAR(std::get<std::vector<float>>(x).at(3), (1 - 0.2860) / 0.3530, 1e-5);
}

TEST(IdxTest, AMissingFileIsNamedWithItsPackage) {
  const std::string folder = FreshFolder("missing");
  const auto dataset = LoadFashionMnist(folder, Part::kTest);
  EXPECT_TRUE(absl::IsNotFound(dataset.status()));
  EXPECT_THAT(dataset.status().message(), HasSubstr(folder + "/t10k-images-idx3-ubyte.gz"));
  EXPECT_THAT(dataset.status().message(), HasSubstr("dataset-fashion-mnist"));
}

TEST(IdxTest, ImagesAndLabelsMustAgree) {
  const std::string folder = FreshFolder("disagree");
  WriteGzip(folder + "/train-images-idx3-ubyte.gz", Idx({2, 1, 1}, {1, 2}));
  WriteGzip(folder + "/train-labels-idx1-ubyte.gz", Idx({3}, {9, 0, 4}));
  EXPECT_THAT(LoadFashionMnist(folder, Part::kTrain).status().message(),
              HasSubstr("(expected 2 labels, got 3)"));
}

TEST(IdxTest, ALabelOutOfRangeIsRefused) {
  const std::string folder = FreshFolder("label");
  WriteGzip(folder + "/train-images-idx3-ubyte.gz", Idx({2, 1, 1}, {1, 2}));
  WriteGzip(folder + "/train-labels-idx1-ubyte.gz", Idx({2}, {9, 10}));
  EXPECT_THAT(LoadFashionMnist(folder, Part::kTrain).status().message(),
              HasSubstr("label 1 of train: out of range (expected 0 to 9, got 10)"));
}

TEST(IdxTest, MalformedFilesAreRefusedWithTheirName) {
  const std::vector<std::vector<uint8_t>> files = {
      {},                                                     // empty file
      {0, 0, 8},                                              // the file ends in the magic number
      {0, 0, 8, 3, 0, 0, 0, 1},                               // the file ends in the header
      Idx({2, 2}, {1, 2, 3, 4}),                              // the header has too few dimensions
      Idx({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7}),                  // the values are one byte too short
      Idx({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9}),            // the values are one byte too long
      Idx({0, 2, 2}, {}),                                     // no images
      Idx({0xffffffff, 0xffffffff, 0xffffffff}, {1, 2, 3}),   // product of dimensions overflows
      Idx({0x80000000, 0x80000000, 4}, {}),                   // product of dimensions is 0 mod 2^64
      {0, 0, 0x0d, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0}  // type float instead of unsigned byte
  };
  for (size_t i = 0; i < files.size(); ++i) {
    const auto array = ParseIdx(files[i], 3, "images");
    EXPECT_TRUE(absl::IsInvalidArgument(array.status())) << i;
    EXPECT_THAT(std::string(array.status().message()),
                AllOf(StartsWith("images: "), HasSubstr("(expected ")))
        << i;
  }
}

TEST(IdxTest, TheInstalledFashionMnistHasItsKnownShape) {
  const std::string folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not installed";
  const Dataset dataset = LoadFashionMnist(folder, Part::kTest).value();
  EXPECT_EQ(dataset.example_count(), 10'000);
  EXPECT_THAT(dataset.example_shape, ElementsAre(1, 28, 28));
}

}  // namespace
}  // namespace thinwire
