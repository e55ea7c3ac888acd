#include "common/text/quoted.h"

#include <gtest/gtest.h>

#include <string>

namespace thinwire {
namespace {

TEST(QuotedTest, AnOrdinaryNameIsOnlyQuoted) {
  EXPECT_EQ(Quoted("layer1.weight"), "\"layer1.weight\"");
  EXPECT_EQ(Quoted(""), "\"\"");
}

TEST(QuotedTest, EscapesWhateverATerminalWouldInterpret) {
  EXPECT_EQ(Quoted("a\"b\n\x1b[31m\xff"), R"("a\"b\n\033[31m\377")");
}

TEST(ShortenedTest, CutsLongTexts) {
  EXPECT_EQ(Shortened(std::string(200, '7')), std::string(200, '7'));
  EXPECT_EQ(Shortened(std::string(201, '7')), std::string(200, '7').append("..."));
}

TEST(QuotedTest, CutsLongTexts) {
  EXPECT_EQ(Quoted(std::string(200, 'x')), "\"" + std::string(200, 'x') + "\"");
  EXPECT_EQ(Quoted(std::string(5'000'000, 'x')), "\"" + std::string(200, 'x') + "...\"");
  EXPECT_EQ(Quoted(std::string(200, '\n')).size(), 205u);
}

}  // namespace
}  // namespace thinwire
