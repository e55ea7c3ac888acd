#include "common/tls/worker_token.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string>

namespace thinwire {
namespace {

std::string KeyOf(char first) {
  std::string key;
  for (int i = 0; i < 32; ++i) key.push_back(static_cast<char>(first + i));
  return key;
}

TEST(WorkerTokenTest, ATokenHasTheDocumentedLayout) {
  // Python: hmac.new(bytes(range(32)), struct.pack('<IQ', 3, 7) + b'train', 'sha256').digest()[:16]
  const unsigned char expected[] = {0x88, 0x80, 0xbc, 0xd3, 0x55, 0xd2, 0xe2, 0x7c,
                                    0x5e, 0xfc, 0x8d, 0x17, 0xee, 0xe5, 0x16, 0xbe};
  EXPECT_EQ(WorkerToken(KeyOf(0), "train", WorkerId{3}, Incarnation{7}),
            std::string(std::begin(expected), std::end(expected)));
}

TEST(WorkerTokenTest, AnotherKeyJobWorkerOrIncarnationHasAnotherToken) {
  const std::set<std::string> tokens = {
      WorkerToken(KeyOf(0), "train", WorkerId{3}, Incarnation{7}),
      WorkerToken(KeyOf(1), "train", WorkerId{3}, Incarnation{7}),
      WorkerToken(KeyOf(0), "other", WorkerId{3}, Incarnation{7}),
      WorkerToken(KeyOf(0), "train", WorkerId{4}, Incarnation{7}),
      WorkerToken(KeyOf(0), "train", WorkerId{3}, Incarnation{8}),
      WorkerToken(KeyOf(0), "train", WorkerId{3}, Incarnation{7ull << 56}),
  };
  EXPECT_EQ(tokens.size(), 6u);
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
