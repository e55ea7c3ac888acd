#include "server/durable/log_format.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

std::string Hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[std::to_integer<int>(byte) / 16];
    text += kDigits[std::to_integer<int>(byte) % 16];
  }
  return text;
}

TEST(LogFormat, ASegmentIsNamedAfterItsFirstRecord) {
  EXPECT_EQ(SegmentName(1), "log-00000000000000000001");
  EXPECT_EQ(ParseSegmentName("log-00000000000000000001"), 1u);
  EXPECT_EQ(SegmentName(18446744073709551615u), "log-18446744073709551615");
  EXPECT_EQ(ParseSegmentName("log-18446744073709551615"), 18446744073709551615u);
}

TEST(LogFormat, OtherNamesAreNoSegments) {
  for (const char* name :
       {"", "log-", "log-1", "log-0000000000000000000x", "log-00000000000000000001.tmp",
        "log-18446744073709551616", "log- 0000000000000000001", "log--0000000000000000001",
        "LOG-00000000000000000001", "LATEST"}) {
    EXPECT_EQ(ParseSegmentName(name), std::nullopt) << name;
  }
}

// docs/event_log.md shows these bytes.
TEST(LogFormat, TheHeadersHaveTheDocumentedBytes) {
  EXPECT_EQ(Hex(SegmentHeader(5)),
            "7468696e776c6f67"
            "0500000000000000"
            "01000000"
            "fbab5d79");
  std::array<std::byte, kRecordHeaderBytes> header;
  const std::string text = "thinwire";
  const ByteChain record(std::as_bytes(std::span(text)), nullptr);
  WriteRecordHeader({.length = 8, .checksum = Checksum(record), .sequence = 6, .commit = 5},
                    header);
  EXPECT_EQ(Hex(header),
            "08000000"
            "769340b1"
            "0600000000000000"
            "0500000000000000"
            "a27114e1");
}

TEST(LogFormat, ARecordHeaderSurvivesARoundTrip) {
  const RecordHeader header = {.length = 7, .checksum = 99, .sequence = 1 << 20, .commit = 3};
  std::array<std::byte, kRecordHeaderBytes> bytes;
  WriteRecordHeader(header, bytes);
  EXPECT_EQ(ParseRecordHeader(bytes), header);
  EXPECT_EQ(ParseRecordHeader(std::span(bytes).first(27)), std::nullopt);
  int damaged_count = 0;
  for (std::byte& byte : bytes) {
    byte ^= std::byte{0x10};
    EXPECT_EQ(ParseRecordHeader(bytes), std::nullopt);
    byte ^= std::byte{0x10};
    ++damaged_count;
  }
  EXPECT_EQ(damaged_count, 28);
}

TEST(LogFormat, ACommitBeginsWithARecordOfItsOwn) {
  std::array<std::byte, kRecordHeaderBytes> bytes;
  WriteRecordHeader({.sequence = 5, .commit = 6}, bytes);
  EXPECT_EQ(ParseRecordHeader(bytes), std::nullopt);
  WriteRecordHeader({.sequence = 5, .commit = 0}, bytes);
  EXPECT_EQ(ParseRecordHeader(bytes), std::nullopt);
}

TEST(LogFormat, ALaterCommitIsFoundAtEveryPosition) {
  int checked_count = 0;
  for (size_t at = 0; at < 50; ++at) {
    std::vector<std::byte> bytes(50 + kRecordHeaderBytes, std::byte{0xAB});
    WriteRecordHeader({.sequence = 9, .commit = 8},
                      std::span(bytes).subspan(at).first<kRecordHeaderBytes>());
    EXPECT_TRUE(HasLaterCommit(bytes, 7));
    EXPECT_FALSE(HasLaterCommit(bytes, 8));
    EXPECT_FALSE(HasLaterCommit(std::span(bytes).first(at + kRecordHeaderBytes - 1), 7));
    ++checked_count;
  }
  EXPECT_EQ(checked_count, 50);
}

}  // namespace
}  // namespace thinwire
