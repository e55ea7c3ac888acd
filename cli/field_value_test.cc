#include "cli/field_value.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "proto/config.pb.h"
#include "proto/config_text.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

TEST(FieldValueTest, TheEffectiveTextHasAlsoTheDefaults) {
  TrainConfig config;
  config.mutable_task()->set_epochs(7);
  config.add_straggler("0:1s");
  const std::string text = EffectiveText(config);
  EXPECT_THAT(text, HasSubstr("  epochs: 7\n"));
  EXPECT_THAT(text, HasSubstr("consistency {\n  mode: \"sync\"\n"));
  EXPECT_THAT(text, HasSubstr("straggler: \"0:1s\"\n"));
}

TEST(FieldValueTest, TheEffectiveTextIsAConfigurationAgain) {
  TrainConfig config;
  config.mutable_task()->set_data_dir("a \"b\" \\ c\n");
  config.mutable_optimization()->set_schedule("step");
  config.mutable_optimization()->add_decay_at(0.25);
  config.mutable_optimization()->set_epsilon(1e-12);
  const auto again = ParseConfig<TrainConfig>(EffectiveText(config), "again");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(EffectiveJson(*again), EffectiveJson(config));
  EXPECT_EQ(again->task().data_dir(), config.task().data_dir());
  EXPECT_EQ(again->optimization().decay_at(0), 0.25);
}

TEST(FieldValueTest, ATextThatIsNoUtf8IsPrintedSomehow) {
  TrainConfig config;
  config.set_report("\xff");
  EXPECT_THAT(EffectiveText(config), HasSubstr("report: "));
}

}  // namespace
}  // namespace thinwire
