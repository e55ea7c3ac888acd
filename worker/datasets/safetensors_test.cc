#include "worker/datasets/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "common/testing/safetensors_file.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Write(const std::string& name, const std::string& bytes) {
  const std::string path = ::testing::TempDir() + "/" + name + ".safetensors";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

const char kGood[] = R"({"__metadata__": {"format": "pt"},
  "y": {"dtype": "I64", "shape": [3], "data_offsets": [24, 48]},
  "x": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}})";

TEST(SafetensorsTest, FloatsAndLabelsAreLoaded) {
  const std::string path =
      Write("good", SafetensorsFile(kGood, ValueBytes<float>({1, 2, 3, 4, 5, 6}) +
                                               ValueBytes<int64_t>({0, 4, 2})));
  const Dataset dataset = LoadSafetensors(path).value();
  EXPECT_THAT(dataset.example_shape, ElementsAre(2));
  EXPECT_THAT(dataset.labels, ElementsAre(0, 4, 2));
  EXPECT_EQ(dataset.class_count, 5);
  EXPECT_THAT(dataset.floats, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(SafetensorsTest, LabelsMayHaveThreeTypes) {
  const std::string x = R"("x": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]})";
  const std::string floats = ValueBytes<float>({1, 2});
  const std::string narrow =
      SafetensorsFile("{" + x + R"(, "y": {"dtype": "U8", "shape": [2], "data_offsets": [8, 10]}})",
                      floats + ValueBytes<uint8_t>({200, 1}));
  EXPECT_THAT(LoadSafetensors(Write("u8", narrow)).value().labels, ElementsAre(200, 1));
  const std::string middle = SafetensorsFile(
      "{" + x + R"(, "y": {"dtype": "I32", "shape": [2], "data_offsets": [8, 16]}})",
      floats + ValueBytes<int32_t>({7, 1}));
  EXPECT_THAT(LoadSafetensors(Write("i32", middle)).value().labels, ElementsAre(7, 1));
}

TEST(SafetensorsTest, ANegativeLabelIsRefused) {
  const std::string path =
      Write("negative", SafetensorsFile(kGood, ValueBytes<float>({1, 2, 3, 4, 5, 6}) +
                                                   ValueBytes<int64_t>({0, -1, 2})));
  EXPECT_THAT(LoadSafetensors(path).status().message(),
              HasSubstr("y[1]: label out of range (expected 0 to 65535, got -1)"));
}

TEST(SafetensorsTest, AMissingTensorIsAnErrorThatListsTheTensors) {
  const std::string path = Write(
      "no_y",
      SafetensorsFile(R"({"z": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})", "a"));
  EXPECT_THAT(LoadSafetensors(path).status().message(), HasSubstr("(expected x and y, got z)"));
}

TEST(SafetensorsTest, WrongTypesAndShapesOfADatasetAreNamed) {
  const std::string halves = SafetensorsFile(
      R"({"x": {"dtype": "F16", "shape": [1, 2], "data_offsets": [0, 4]},
          "y": {"dtype": "U8", "shape": [1], "data_offsets": [4, 5]}})",
      "abcde");
  EXPECT_THAT(
      LoadSafetensors(Write("halves", halves)).status().message(),
      HasSubstr("x: wrong type or shape (expected non-empty F32 [n, ...], got F16 [1, 2])"));
  const std::string counts = SafetensorsFile(
      R"({"x": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]},
          "y": {"dtype": "U8", "shape": [2], "data_offsets": [4, 6]}})",
      "abcdef");
  EXPECT_THAT(LoadSafetensors(Write("counts", counts)).status().message(),
              HasSubstr("y: wrong type or shape (expected I64, I32 or U8 [1], got U8 [2])"));
}

}  // namespace
}  // namespace thinwire
