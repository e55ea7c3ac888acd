#include "proto/join_tensors.h"

#include <gtest/gtest.h>

#include <vector>

namespace thinwire {
namespace {

TEST(JoinTensorsTest, ARequestKeepsAllPropertiesOfATensor) {
  const std::vector<TensorShape> tensors = {
      {"w", {2, 3}}, {.name = "b", .shape = {7}, .group = 2, .whole = true}, {"scalar", {}}};
  JoinRequest join;
  SetTensors(tensors, join);
  EXPECT_EQ(TensorsOf(join), tensors);
}

TEST(JoinTensorsTest, SettingReplacesTheOldTensors) {
  JoinRequest join;
  SetTensors(std::vector<TensorShape>{{"old", {1}}, {"older", {2}}}, join);
  SetTensors(std::vector<TensorShape>{{"new", {3}}}, join);
  EXPECT_EQ(TensorsOf(join), (std::vector<TensorShape>{{"new", {3}}}));
}

}  // namespace
}  // namespace thinwire
