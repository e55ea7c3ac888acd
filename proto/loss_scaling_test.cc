#include "proto/loss_scaling.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

namespace thinwire {
namespace {

std::optional<LossScaling> Of(const std::string& text) {
  Task task;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &task)) << text;
  return LossScalingOf(task);
}

TEST(LossScalingTest, OnlyHalvesAreScaledUnasked) {
  EXPECT_EQ(Of("precision: 'fp16'"), (LossScaling{.first = 65536, .interval = 2000}));
  EXPECT_EQ(Of("precision: 'bf16'"), std::nullopt);
  EXPECT_EQ(Of(""), std::nullopt);
}

TEST(LossScalingTest, WhoAsksGetsWhatWasAskedFor) {
  EXPECT_EQ(Of("precision: 'bf16' loss_scale: 1024"), (LossScaling{.first = 1024}));
  EXPECT_EQ(Of("loss_scale: 1"), (LossScaling{.first = 1}));
  EXPECT_EQ(Of("precision: 'fp16' loss_scale: 256 loss_scale_interval: 50"),
            (LossScaling{.first = 256, .interval = 50}));
}

}  // namespace
}  // namespace thinwire
