#include "cli/field_docs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(FieldDocsTest, AFieldsCommentStandsRightAboveIt) {
  EXPECT_THAT(ParseFieldDocs(
                  "// Of the file.\n\nmessage A {\n  // One:\n  // two.\n  optional int32 x = 1;\n"
                  "  repeated int32 y = 2;\n}\n// Of B.\nmessage B {\n  // Three.\n"
                  "  optional double z = 1 [default = 2];  // no\n}\n"),
              ElementsAre(Pair("A.x", "One: two."), Pair("B.z", "Three.")));
}

TEST(FieldDocsTest, TheConfigurationsAreDocumented) {
  EXPECT_THAT(ConfigFieldDocs().at("Consistency.mode"), HasSubstr("every step waits"));
  EXPECT_THAT(ConfigFieldDocs().at("TrainConfig.straggler"), HasSubstr("WORKER:DELAY"));
}

}  // namespace
}  // namespace thinwire
