#include "client/put_backs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/codec/sparse/index_list.h"

namespace thinwire::client {
namespace {

using ::testing::HasSubstr;
using Indices = std::vector<uint32_t>;

constexpr ShardId kShard{3};
constexpr size_t kValues = 100;

ParametersEntry Answer(uint64_t frontier, const Indices& taken) {
  return {.shard = kShard,
          .step = Step{frontier},
          .frontier = Step{frontier},
          .selected = EncodeIndexList(taken, kValues)};
}

PushEntry Push(uint64_t step, uint32_t examples = 8) {
  return {.shard = kShard,
          .step = Step{step},
          .examples = examples,
          .payload = ByteChain(std::vector<std::byte>(5))};
}

class PutBacksTest : public ::testing::Test {
 protected:
  PutBacks::Outcome Answered(const ParametersEntry& entry) {
    return put_backs_.Answered(entry, kValues).value();
  }

  PutBacks put_backs_{4};
};

TEST_F(PutBacksTest, AnAcceptedPushIsPutBackOnceByTheAnswerOfItsRound) {
  EXPECT_FALSE(Answered(Answer(0, {})).push.has_value());
  EXPECT_TRUE(put_backs_.Keeps(kShard));
  EXPECT_FALSE(put_backs_.Accepted(Push(0)).push.has_value());
  EXPECT_TRUE(put_backs_.pending());
  const PutBacks::Outcome outcome = Answered(Answer(1, {7, 90}));
  EXPECT_EQ(outcome.push, Push(0));
  EXPECT_EQ(Indices(outcome.taken.begin(), outcome.taken.end()), (Indices{7, 90}));
  EXPECT_FALSE(outcome.lost);
  EXPECT_FALSE(put_backs_.pending());
  EXPECT_FALSE(Answered(Answer(1, {7, 90})).push.has_value());
}

TEST_F(PutBacksTest, AnAnswerMayOvertakeTheVerdict) {
  Answered(Answer(4, {3}));
  EXPECT_FALSE(Answered(Answer(5, {7, 90})).push.has_value());
  const PutBacks::Outcome outcome = put_backs_.Accepted(Push(4));
  EXPECT_EQ(outcome.push, Push(4));
  EXPECT_EQ(Indices(outcome.taken.begin(), outcome.taken.end()), (Indices{7, 90}));
  EXPECT_FALSE(put_backs_.pending());
  Answered(Answer(7, {2}));
  EXPECT_TRUE(put_backs_.Accepted(Push(5)).lost);
  EXPECT_FALSE(put_backs_.pending());
}

TEST_F(PutBacksTest, AnAnswerOfLaterRoundsPutsNothingBackAndSaysSo) {
  Answered(Answer(0, {}));
  put_backs_.Accepted(Push(0));
  const PutBacks::Outcome outcome = Answered(Answer(2, {7}));
  EXPECT_FALSE(outcome.push.has_value());
  EXPECT_TRUE(outcome.lost);
  EXPECT_FALSE(put_backs_.pending());
  EXPECT_FALSE(Answered(Answer(3, {7})).lost) << "once";
}

TEST_F(PutBacksTest, APushThatHeardNothingBeforeTheNextIsLost) {
  Answered(Answer(0, {}));
  EXPECT_FALSE(put_backs_.Accepted(Push(0)).lost);
  EXPECT_TRUE(put_backs_.Accepted(Push(1)).lost);
  EXPECT_EQ(Answered(Answer(2, {})).push, Push(1));
  EXPECT_FALSE(put_backs_.pending());
}

TEST_F(PutBacksTest, NothingIsKeptWhereAnswersHaveNoListOrThePushHadNoWeight) {
  put_backs_.Accepted(Push(0));
  EXPECT_FALSE(put_backs_.pending());
  ParametersEntry without_list = Answer(1, {});
  without_list.selected = ByteChain();
  Answered(without_list);
  EXPECT_FALSE(put_backs_.Keeps(kShard));
  Answered(Answer(1, {}));
  put_backs_.Accepted(Push(1, 0));
  EXPECT_FALSE(put_backs_.pending());
}

TEST_F(PutBacksTest, AListThatIsNoneIsAnErrorThatNamesTheShard) {
  Answered(Answer(0, {}));
  put_backs_.Accepted(Push(0));
  for (const ByteChain& list :
       {EncodeIndexList(Indices{kValues}, kValues + 1), EncodeIndexList(Indices{61, 60}, kValues),
        EncodeIndexList(Indices{1, 2}, 50 * kValues), ByteChain(std::vector<std::byte>(3))}) {
    ParametersEntry entry = Answer(1, {});
    entry.selected = list;
    const auto outcome = put_backs_.Answered(entry, kValues);
    EXPECT_TRUE(absl::IsInvalidArgument(outcome.status()));
    EXPECT_THAT(std::string(outcome.status().message()),
                HasSubstr("shard 3: selected: list of indices below 100: "));
  }
  EXPECT_TRUE(Answered(Answer(1, {5})).push.has_value()) << "as if they had not come";
}

}  // namespace
}  // namespace thinwire::client
