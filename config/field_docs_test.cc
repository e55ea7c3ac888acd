#include "config/field_docs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/fields.h"
#include "proto/job.pb.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(FieldDocsTest, TheCommentOfAFieldIsDirectlyAboveIt) {
  EXPECT_THAT(
      ParseFieldDocs(
          "// About the file.\n\nmessage A {\n  // One:\n  // two.\n  optional int32 x = 1;\n"
          "  repeated int32 y = 2;\n}\n// About B.\nmessage B {\n  message C {\n    enum Value "
          "{\n      a = 0;\n    }\n  }\n  // Three.\n"
          "  optional double z = 1 [default = 2];  // no\n}\n"),
      ElementsAre(Pair("A.x", "One: two."), Pair("B.z", "Three.")));
}

TEST(FieldDocsTest, EveryFieldOfAJobIsDocumented) {
  const FieldDocs docs = JobFieldDocs();
  for (const Field& field : LeafFields(*JobConfig::descriptor())) {
    const std::string name = field.descriptor().containing_type()->name() + "." + field.name();
    EXPECT_EQ(docs.count(name), 1u) << name;
  }
  EXPECT_THAT(docs.at("Consistency.mode"), HasSubstr("every step waits"));
  EXPECT_THAT(docs.at("JobConfig.straggler"), HasSubstr("WORKER:DELAY"));
}

}  // namespace
}  // namespace thinwire
