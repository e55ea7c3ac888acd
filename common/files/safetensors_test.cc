#include "common/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/testing/safetensors_file.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<SafetensorsIndex> Parse(const std::string& file) {
  return ParseSafetensors({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, "f");
}

TEST(SafetensorsTest, AHeaderLongerThanTheFileIsRefused) {
  EXPECT_THAT(Parse("1234567").status().message(), HasSubstr("expected 8 bytes"));
  EXPECT_THAT(Parse(ValueBytes<uint64_t>({3}) + "{}").status().message(),
              HasSubstr("expected at most 2 bytes, got 3"));
  EXPECT_THAT(Parse(ValueBytes<uint64_t>({~uint64_t{0}}) + "{}").status().message(),
              HasSubstr("got 18446744073709551615"));
}

TEST(SafetensorsTest, InvalidHeadersAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "JSON"},
      {"[]", "JSON"},
      {"{\"a\": ", "JSON"},
      {R"({"a": 1})", "not an object"},
      {R"({"a": {"shape": [4], "data_offsets": [0, 4]}})", "no dtype"},
      {R"({"a": {"dtype": "U9", "shape": [4], "data_offsets": [0, 4]}})", "unknown dtype"},
      {R"({"a": {"dtype": "U8", "shape": [-4], "data_offsets": [0, 4]}})", "no valid shape"},
      {R"({"a": {"dtype": "U8", "shape": [4.0], "data_offsets": [0, 4]}})", "no valid shape"},
      {R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [4]}})", "no valid data_offsets"},
      {R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [4, 0]}})",
       "data_offsets out of range"},
      {R"({"a": {"dtype": "U8", "shape": [5], "data_offsets": [0, 5]}})",
       "data_offsets out of range"},
      {R"({"a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 4]}})",
       "expected 3 bytes, got 4"},
      // The size of this tensor, 2^33 * 2^31 * 1 byte, is 2^64, which overflows to 0.
      {R"({"a": {"dtype": "U8", "shape": [8589934592, 2147483648], "data_offsets": [0, 0]}})",
       "more than 2^64"},
      {R"({"a": {"dtype": "F32", "shape": [4611686018427387905], "data_offsets": [0, 4]}})",
       "more than 2^64"},
      {R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}})",
       "expected 2 bytes of tensors"},
      {R"({"a": {"dtype": "U8", "shape": [3], "data_offsets": [1, 4]}})", "gap or overlap"},
      {R"({"a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
           "b": {"dtype": "U8", "shape": [2], "data_offsets": [2, 4]}})",
       "gap or overlap"},
      {R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
           "a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}})",
       "without duplicate keys"},
      {R"({"a": {"dtype": "U8", "dtype": "I8", "shape": [4], "data_offsets": [0, 4]}})",
       "without duplicate keys"},
  };
  for (const auto& [header, want] : cases) {
    const absl::Status status = Parse(SafetensorsFile(header, "abcd")).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << header;
    EXPECT_THAT(status.message(), HasSubstr(want)) << header;
  }
}

TEST(SafetensorsTest, ADeeplyNestedHeaderIsRefused) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(Parse(SafetensorsFile(std::string(100'000, '['), "")).status()));
  const std::string nested =
      R"({"a": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_TRUE(absl::IsInvalidArgument(Parse(SafetensorsFile(nested, "")).status()));
}

TEST(SafetensorsTest, AWrittenHeaderDescribesTheTensors) {
  const std::string header =
      SafetensorsHeader({{{.name = "b", .dtype = "F32", .shape = {2}, .bytes = 8},
                          {.name = "a", .dtype = "U8", .shape = {}, .bytes = 1}}},
                        {{"format", "pt"}});
  EXPECT_EQ(header.size() % 8, 0u);
  const std::string file = header + ValueBytes<float>({1, 2}) + "x";
  const SafetensorsIndex index = Parse(file).value();
  ASSERT_EQ(index.size(), 2u);
  EXPECT_EQ(index.at("b").dtype, "F32");
  EXPECT_THAT(index.at("b").shape, ElementsAre(2));
  EXPECT_EQ(std::string(index.at("b").bytes.begin(), index.at("b").bytes.end()),
            ValueBytes<float>({1, 2}));
  EXPECT_THAT(index.at("a").shape, ElementsAre());
  EXPECT_EQ(index.at("a").bytes[0], 'x');
}

}  // namespace
}  // namespace thinwire
