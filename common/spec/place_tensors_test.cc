#include "common/spec/place_tensors.h"

#include <gtest/gtest.h>

#include <vector>

namespace thinwire {
namespace {

const std::vector<TensorShape> kTensors = {
    {"conv1.weight", {4, 4}}, {"conv1.bias", {4}}, {"norm.bias", {4}}, {"fc.weight", {4, 2}}};

std::vector<uint32_t> GroupsOf(const std::vector<GroupSpec>& groups) {
  std::vector<TensorShape> tensors = kTensors;
  EXPECT_EQ(PlaceTensors(groups, tensors), absl::OkStatus());
  std::vector<uint32_t> placed;
  for (const TensorShape& tensor : tensors) placed.push_back(tensor.group);
  return placed;
}

TEST(PlaceTensorsTest, TheFirstMatchWins) {
  EXPECT_EQ(GroupsOf({{}, {.match = "*.bias"}, {.match = "*"}}),
            (std::vector<uint32_t>{2, 1, 1, 2}));
  EXPECT_EQ(GroupsOf({{}, {.match = "norm.*"}, {.match = "*.bias"}}),
            (std::vector<uint32_t>{0, 2, 1, 0}));
}

TEST(PlaceTensorsTest, APatternDescribesTheWholeName) {
  EXPECT_EQ(GroupsOf({{}, {.match = "fc.weigh?"}}), (std::vector<uint32_t>{0, 0, 0, 1}));
  EXPECT_EQ(GroupsOf({{}, {.match = "[cn]o*.bias"}}), (std::vector<uint32_t>{0, 1, 1, 0}));
}

TEST(PlaceTensorsTest, NoGroupsLeaveAllTensorsInGroup0) {
  EXPECT_EQ(GroupsOf({}), (std::vector<uint32_t>{0, 0, 0, 0}));
  EXPECT_EQ(GroupsOf({{}}), (std::vector<uint32_t>{0, 0, 0, 0}));
}

TEST(PlaceTensorsTest, AnOptimizerWithNormsKeepsTensorsWhole) {
  std::vector<TensorShape> tensors = kTensors;
  const std::vector<GroupSpec> groups = {
      {.optimizer = {.kind = OptimizerKind::kLars}},
      {.match = "*.bias", .optimizer = {.kind = OptimizerKind::kMomentum}}};
  ASSERT_EQ(PlaceTensors(groups, tensors), absl::OkStatus());
  EXPECT_TRUE(tensors[0].whole);
  EXPECT_FALSE(tensors[1].whole);
}

TEST(PlaceTensorsTest, AGroupWithoutTensorIsAnError) {
  std::vector<TensorShape> tensors = kTensors;
  const auto error = [&](const std::vector<GroupSpec>& groups) {
    return std::string(PlaceTensors(groups, tensors).message());
  };
  EXPECT_EQ(error({{}, {.match = "*.bias"}, {.match = "bias"}}),
            "parameter_group[1].match: no tensor (expected a pattern of a tensor that no earlier "
            "group matches, such as \"conv1.weight\", got \"bias\")");
  EXPECT_NE(error({{}, {.match = "*"}, {.match = "norm.*"}}), "");
}

}  // namespace
}  // namespace thinwire
