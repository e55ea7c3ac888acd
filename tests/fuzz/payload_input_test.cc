#include "tests/fuzz/payload_input.h"

#include <algorithm>
#include <random>

#include "common/codec/codec.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

class PayloadInputOfEachFamily : public testing::TestWithParam<Family> {};

TEST_P(PayloadInputOfEachFamily, EverySeedIsAPayloadOfTheFamily) {
  const auto seeds = Seeds(GetParam());
  EXPECT_GE(seeds.size(), 2u);
  for (const auto& seed : seeds) {
    const PayloadInput input = ReadInput(GetParam(), seed).value();
    const auto payload = CheckPayload(input.payload, input.count);
    ASSERT_TRUE(payload.ok()) << payload.status();
    EXPECT_GT(std::ranges::count(GetParam().codecs, PayloadCodec(*payload)), 0);
    EXPECT_EQ(Fault(input), "");
  }
}

TEST_P(PayloadInputOfEachFamily, ChangedSeedsAreRefusedOrReadTheSameWayByAllReaders) {
  std::mt19937 random(1);
  int checked_count = 0;
  for (const auto& seed : Seeds(GetParam())) {
    for (int round = 0; round < 300; ++round) {
      auto changed = seed;
      for (int i = 0; i <= round % 4; ++i) {
        changed[random() % changed.size()] = static_cast<std::byte>(random());
      }
      if (round % 5 == 0) changed.resize(4 + random() % (changed.size() - 3));
      const PayloadInput input = ReadInput(GetParam(), changed).value();
      if (CheckPayload(input.payload, input.count).ok()) ++checked_count;
      ASSERT_EQ(Fault(input), "") << "round " << round;
    }
  }
  EXPECT_GT(checked_count, 100) << "accepted payloads";
}

TEST_P(PayloadInputOfEachFamily, AShortInputIsRefused) {
  EXPECT_FALSE(ReadInput(GetParam(), std::vector<std::byte>(3)).has_value());
}

INSTANTIATE_TEST_SUITE_P(All, PayloadInputOfEachFamily, testing::ValuesIn(Families()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace thinwire
