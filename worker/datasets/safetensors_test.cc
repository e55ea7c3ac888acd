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
  const Dataset dataset = LoadSafetensors(path, LossKind::kCrossEntropy).value();
  EXPECT_THAT(dataset.example_shape, ElementsAre(2));
  EXPECT_THAT(dataset.labels, ElementsAre(0, 4, 2));
  EXPECT_EQ(dataset.class_count, 5);
  EXPECT_THAT(std::get<std::vector<float>>(dataset.values), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(SafetensorsTest, LabelsMayHaveThreeTypes) {
  const std::string x = R"("x": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]})";
  const std::string floats = ValueBytes<float>({1, 2});
  const std::string narrow =
      SafetensorsFile("{" + x + R"(, "y": {"dtype": "U8", "shape": [2], "data_offsets": [8, 10]}})",
                      floats + ValueBytes<uint8_t>({200, 1}));
  EXPECT_THAT(LoadSafetensors(Write("u8", narrow), LossKind::kCrossEntropy).value().labels,
              ElementsAre(200, 1));
  const std::string middle = SafetensorsFile(
      "{" + x + R"(, "y": {"dtype": "I32", "shape": [2], "data_offsets": [8, 16]}})",
      floats + ValueBytes<int32_t>({7, 1}));
  EXPECT_THAT(LoadSafetensors(Write("i32", middle), LossKind::kCrossEntropy).value().labels,
              ElementsAre(7, 1));
}

TEST(SafetensorsTest, ANegativeLabelIsRefused) {
  const std::string path =
      Write("negative", SafetensorsFile(kGood, ValueBytes<float>({1, 2, 3, 4, 5, 6}) +
                                                   ValueBytes<int64_t>({0, -1, 2})));
  EXPECT_THAT(LoadSafetensors(path, LossKind::kCrossEntropy).status().message(),
              HasSubstr("y[1]: label out of range (expected 0 to 65535, got -1)"));
}

TEST(SafetensorsTest, AMissingTensorIsAnErrorThatListsTheTensors) {
  const std::string path = Write(
      "no_y",
      SafetensorsFile(R"({"z": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})", "a"));
  EXPECT_THAT(LoadSafetensors(path, LossKind::kCrossEntropy).status().message(),
              HasSubstr("(expected x and y, got z)"));
}

TEST(SafetensorsTest, WrongTypesAndShapesOfADatasetAreNamed) {
  const std::string halves = SafetensorsFile(
      R"({"x": {"dtype": "F16", "shape": [1, 2], "data_offsets": [0, 4]},
          "y": {"dtype": "U8", "shape": [1], "data_offsets": [4, 5]}})",
      "abcde");
  EXPECT_THAT(
      LoadSafetensors(Write("halves", halves), LossKind::kCrossEntropy).status().message(),
      HasSubstr("x: wrong type or shape (expected non-empty F32, I64, I32 or U8 [n, dims...], got "
                "F16 [1, 2])"));
  const std::string counts = SafetensorsFile(
      R"({"x": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]},
          "y": {"dtype": "U8", "shape": [2], "data_offsets": [4, 6]}})",
      "abcdef");
  EXPECT_THAT(
      LoadSafetensors(Write("counts", counts), LossKind::kCrossEntropy).status().message(),
      HasSubstr("y: wrong type or shape (expected I64, I32 or U8 [1], the classes, or loss: "
                "script for other targets, got U8 [2])"));
}

// Two examples x of three token ids, with the targets in Y_TYPE of Y_SHAPE and Y_BYTES.
std::string Tokens(const std::string& name, const std::string& y_type, const std::string& y_shape,
                   const std::string& y_bytes) {
  const std::string header =
      R"({"x": {"dtype": "I32", "shape": [2, 3], "data_offsets": [0, 24]}, "y": {"dtype": ")" +
      y_type + R"(", "shape": )" + y_shape + R"(, "data_offsets": [24, )" +
      std::to_string(24 + y_bytes.size()) + "]}}";
  return Write(name, SafetensorsFile(header, ValueBytes<int32_t>({1, 2, 3, 4, 5, 6}) + y_bytes));
}

TEST(SafetensorsTest, TargetsOfALossHaveAnyTypeAndShape) {
  const std::string pairs =
      Tokens("pairs", "F32", "[2, 1, 2]", ValueBytes<float>({0.5f, -1, 2, 3}));
  const Dataset dataset = LoadSafetensors(pairs, LossKind::kScript).value();
  EXPECT_EQ(dataset.example_count(), 2);
  EXPECT_EQ(dataset.class_count, 0);
  EXPECT_THAT(std::get<std::vector<int32_t>>(dataset.values), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(std::get<std::vector<float>>(dataset.targets), ElementsAre(0.5f, -1, 2, 3));
  EXPECT_THAT(dataset.target_shape, ElementsAre(1, 2));
  const std::string mask = Tokens("mask", "U8", "[2]", ValueBytes<uint8_t>({200, 7}));
  EXPECT_THAT(std::get<std::vector<uint8_t>>(LoadSafetensors(mask, LossKind::kScript)->targets),
              ElementsAre(200, 7));
  const std::string wide = Tokens("wide", "I64", "[2]", ValueBytes<int64_t>({-100, 7}));
  EXPECT_THAT(std::get<std::vector<int64_t>>(LoadSafetensors(wide, LossKind::kScript)->targets),
              ElementsAre(-100, 7));
}

TEST(SafetensorsTest, ExamplesAndTargetsHaveTheSameNumberOfRows) {
  const std::string path = Tokens("rows", "F32", "[3]", ValueBytes<float>({1, 2, 3}));
  EXPECT_THAT(LoadSafetensors(path, LossKind::kScript).status().message(),
              HasSubstr("y: wrong number of rows (expected 2, as x, got 3)"));
}

TEST(SafetensorsTest, TargetsOfAnUnknownTypeAreRefused) {
  const std::string path = Tokens("halves", "F16", "[2]", "abcd");
  EXPECT_THAT(LoadSafetensors(path, LossKind::kScript).status().message(),
              HasSubstr("y: wrong type or shape (expected non-empty F32, I64, I32 or U8 [n, ...], "
                        "got F16 [2])"));
}

}  // namespace
}  // namespace thinwire
