#include "cli/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(LineSplitterTest, ALineMayComeInPieces) {
  LineSplitter splitter;
  EXPECT_THAT(splitter.Take("listening 127"), IsEmpty());
  EXPECT_THAT(splitter.Take(".0.0.1:4\n\nsecond\nth"),
              ElementsAre("listening 127.0.0.1:4", "", "second"));
  EXPECT_THAT(splitter.TakeRest(), ElementsAre("th"));
  EXPECT_THAT(splitter.TakeRest(), IsEmpty());
}

TEST(LineSplitterTest, AnEndlessLineIsCut) {
  LineSplitter splitter;
  const std::string much(LineSplitter::kLongestLine + 10, 'x');
  EXPECT_THAT(splitter.Take(much), ElementsAre(SizeIs(LineSplitter::kLongestLine)));
  EXPECT_THAT(splitter.TakeRest(), ElementsAre(SizeIs(10)));
}

}  // namespace
}  // namespace thinwire
