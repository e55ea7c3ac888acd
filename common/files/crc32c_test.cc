#include "common/files/crc32c.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace thinwire {
namespace {

uint32_t Of(std::string_view text) { return Crc32c(std::as_bytes(std::span(text))); }

TEST(Crc32cTest, MatchesThePublishedValues) {
  EXPECT_EQ(Of(""), 0u);
  EXPECT_EQ(Of("123456789"), 0xE3069283u);
  // RFC 3720, B.4.
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32, std::byte{0})), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43u);
}

TEST(Crc32cTest, ContinuesFromAnEarlierChecksum) {
  const std::string_view text = "the quick brown fox";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const auto bytes = std::as_bytes(std::span(text));
    EXPECT_EQ(Crc32c(bytes.subspan(cut), Crc32c(bytes.first(cut))), Of(text));
  }
}

}  // namespace
}  // namespace thinwire
