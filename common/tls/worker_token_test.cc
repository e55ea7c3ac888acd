#include "common/tls/worker_token.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string>

#include "absl/time/time.h"

namespace thinwire {
namespace {

const absl::Time kEnd = absl::FromUnixSeconds(1800000000);

std::string KeyOf(char first) {
  std::string key;
  for (int i = 0; i < 32; ++i) key.push_back(static_cast<char>(first + i));
  return key;
}

TEST(WorkerTokenTest, ATokenHasTheDocumentedLayout) {
  // Python: end = struct.pack('<Q', 1800000000)
  // end + hmac.new(bytes(range(32)), struct.pack('<IQ', 3, 7) + end + b'train', 'sha256').digest()[:16]
  const unsigned char expected[] = {0x00, 0xd2, 0x49, 0x6b, 0x00, 0x00, 0x00, 0x00,
                                    0x84, 0xf7, 0xbf, 0x87, 0xbc, 0xb9, 0x03, 0x16,
                                    0x11, 0x81, 0x34, 0x18, 0xbd, 0x35, 0x28, 0x97};
  const std::string token = WorkerToken(KeyOf(0), "train", WorkerId{3}, Incarnation{7}, kEnd);
  EXPECT_EQ(token, std::string(std::begin(expected), std::end(expected)));
  EXPECT_EQ(TokenEnd(token), kEnd);
  EXPECT_EQ(TokenEnd(token.substr(0, 7)), absl::InfinitePast());
}

TEST(WorkerTokenTest, AnotherKeyJobWorkerIncarnationOrEndHasAnotherToken) {
  const std::set<std::string> tokens = {
      WorkerToken(KeyOf(0), "train", WorkerId{3}, Incarnation{7}, kEnd),
      WorkerToken(KeyOf(1), "train", WorkerId{3}, Incarnation{7}, kEnd),
      WorkerToken(KeyOf(0), "other", WorkerId{3}, Incarnation{7}, kEnd),
      WorkerToken(KeyOf(0), "train", WorkerId{4}, Incarnation{7}, kEnd),
      WorkerToken(KeyOf(0), "train", WorkerId{3}, Incarnation{8}, kEnd),
      WorkerToken(KeyOf(0), "train", WorkerId{3}, Incarnation{7ull << 56}, kEnd),
      WorkerToken(KeyOf(0), "train", WorkerId{3}, Incarnation{7}, kEnd + absl::Seconds(1)),
  };
  EXPECT_EQ(tokens.size(), 7u);
}

TEST(WorkerTokenTest, EveryRunHasAnotherKey) {
  const auto first = DrawTokenKey();
  const auto second = DrawTokenKey();
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(first->size(), 32u);
  EXPECT_EQ(second->size(), 32u);
  EXPECT_NE(*first, *second);
}

TEST(WorkerTokenTest, OnlyEqualTokensAreTheSame) {
  EXPECT_TRUE(SameToken("0123", "0123"));
  EXPECT_FALSE(SameToken("0123", "0124"));
  EXPECT_FALSE(SameToken("0123", "012"));
  EXPECT_FALSE(SameToken("0123", "01234"));
  EXPECT_FALSE(SameToken("0123", ""));
}

}  // namespace
}  // namespace thinwire
