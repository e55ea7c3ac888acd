#include "server/core/publish/publisher.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

const std::byte* Memory(const ByteChain& chain) { return chain.pieces()[0].bytes.data(); }

TEST(PublisherTest, EncodesAVersionOncePerCodec) {
  Publisher publisher;
  const std::vector<float> masters = {1, -2, 3};
  const ByteChain first = publisher.Encoded(Version{0}, masters, CodecId::kFp32);
  EXPECT_EQ(first, Fp32Payload({1, -2, 3}).bytes());
  EXPECT_EQ(Memory(publisher.Encoded(Version{0}, masters, CodecId::kFp32)), Memory(first));
  const ByteChain half = publisher.Encoded(Version{0}, masters, CodecId::kBf16);
  EXPECT_EQ(PayloadCodec(CheckPayload(half, 3).value()), CodecId::kBf16);
  EXPECT_EQ(Values(half, 3), masters);
  EXPECT_EQ(Memory(publisher.Encoded(Version{0}, masters, CodecId::kFp32)), Memory(first));
}

TEST(PublisherTest, EncodesANewVersionAndKeepsTheOldBytes) {
  Publisher publisher;
  std::vector<float> masters = {1};
  const ByteChain old = publisher.Encoded(Version{0}, masters, CodecId::kFp32);
  masters[0] = 5;
  EXPECT_EQ(Values(publisher.Encoded(Version{1}, masters, CodecId::kFp32), 1),
            std::vector<float>{5});
  EXPECT_EQ(Values(old, 1), std::vector<float>{1});
}

TEST(PublisherTest, EveryDenseCodecGivesAValidPayload) {
  Publisher publisher;
  const std::vector<float> masters(100, 0.5f);
  for (const CodecId codec :
       {CodecId::kFp32, CodecId::kFp16, CodecId::kBf16, CodecId::kFp8E5m2, CodecId::kFp8E4m3}) {
    const ByteChain payload = publisher.Encoded(Version{0}, masters, codec);
    EXPECT_TRUE(CheckPayload(payload, 100).ok()) << codec;
    EXPECT_EQ(Values(payload, 100), masters) << codec;
  }
}

}  // namespace
}  // namespace thinwire
