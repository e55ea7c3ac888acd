#include "common/text/did_you_mean.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace thinwire {
namespace {

const std::vector<std::string_view> kNames = {"sgd", "momentum", "adam", "adamw", "learning_rate"};

TEST(DidYouMeanTest, FindsTheWordForEachKindOfEdit) {
  EXPECT_EQ(DidYouMean("momentun", kNames), "momentum");           // replaced
  EXPECT_EQ(DidYouMean("momntum", kNames), "momentum");            // removed
  EXPECT_EQ(DidYouMean("momenttum", kNames), "momentum");          // inserted
  EXPECT_EQ(DidYouMean("sdg", kNames), "sgd");                     // swapped
  EXPECT_EQ(DidYouMean("ADAM", kNames), "adam");                   // upper case
  EXPECT_EQ(DidYouMean("lerning-rate", kNames), "learning_rate");  // two edits
}

TEST(DidYouMeanTest, ReturnsNothingForDistantWords) {
  EXPECT_EQ(DidYouMean("lamb", kNames), "");
  EXPECT_EQ(DidYouMean("rmsprop", kNames), "");
  EXPECT_EQ(DidYouMean("", kNames), "");
  EXPECT_EQ(DidYouMean("adam", {}), "");
}

TEST(DidYouMeanTest, NeverReplacesAllLetters) {
  EXPECT_EQ(DidYouMean("b", std::vector<std::string_view>{"a"}), "");
}

TEST(DidYouMeanTest, PrefersTheSmallestDistanceAndThenTheFirstWord) {
  EXPECT_EQ(DidYouMean("adamww", kNames), "adamw");
  EXPECT_EQ(DidYouMean("cat", std::vector<std::string_view>{"bat", "rat"}), "bat");
  EXPECT_EQ(DidYouMean("cat", std::vector<std::string_view>{"rat", "bat"}), "rat");
}

TEST(DidYouMeanTest, AVeryLongWordHasNoNeighbour) {
  const std::string long_word(1 << 20, 'x');
  EXPECT_EQ(DidYouMean(long_word, kNames), "");
  EXPECT_EQ(DidYouMean("adm", std::vector<std::string_view>{long_word, "adam"}), "adam");
}

TEST(DidYouMeanTest, TheErrorListsTheWordsAndSuggestsTheNearest) {
  const std::vector<std::string_view> known = {"sgd", "adam", "adamw"};
  EXPECT_EQ(
      UnknownWord("optimizer", "adma", known),
      absl::InvalidArgumentError(
          "optimizer: unknown (expected sgd, adam or adamw, got \"adma\"; did you mean adam?)"));
  EXPECT_EQ(UnknownWord("optimizer", "lion\n", known),
            absl::InvalidArgumentError(
                "optimizer: unknown (expected sgd, adam or adamw, got \"lion\\n\")"));
}

}  // namespace
}  // namespace thinwire
