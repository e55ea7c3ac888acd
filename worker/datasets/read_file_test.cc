#include "worker/datasets/read_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

std::string PathOf(const std::string& name) { return ::testing::TempDir() + "/read_file_" + name; }

void WriteGzip(const std::string& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}

TEST(ReadFileTest, PlainAndCompressedFilesReadAlike) {
  const std::string text(3'000'000, 'x');
  std::ofstream(PathOf("plain")) << text;
  WriteGzip(PathOf("packed.gz"), text);
  EXPECT_EQ(ReadFile(PathOf("plain")).value(), std::vector<uint8_t>(text.begin(), text.end()));
  EXPECT_EQ(ReadFile(PathOf("packed.gz")).value(), std::vector<uint8_t>(text.begin(), text.end()));
}

TEST(ReadFileTest, AMissingFileIsNamed) {
  const auto bytes = ReadFile(PathOf("missing"));
  EXPECT_TRUE(absl::IsNotFound(bytes.status())) << bytes.status();
  EXPECT_THAT(bytes.status().message(), HasSubstr(PathOf("missing")));
}

TEST(ReadFileTest, AGzipStreamCutShortIsRefused) {
  const std::string path = PathOf("cut.gz");
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i * 7919);
  WriteGzip(path, text);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto bytes = ReadFile(path);
  EXPECT_TRUE(absl::IsInvalidArgument(bytes.status())) << bytes.status();
  EXPECT_THAT(bytes.status().message(), HasSubstr(path));
}

TEST(ReadFileTest, ADamagedGzipStreamIsRefused) {
  const std::string path = PathOf("damaged.gz");
  WriteGzip(path, std::string(100'000, 'y').append("z"));
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(40);
    file.write("\x55\xaa\x55\xaa", 4);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ReadFile(path).status()));
}

TEST(ReadFileTest, ADecompressionBombIsRefusedAtTheLimit) {
  const std::string path = PathOf("bomb.gz");
  WriteGzip(path, std::string(8'000'000, '\0'));
  const auto bytes = ReadFile(path, 1'000'000);
  EXPECT_TRUE(absl::IsInvalidArgument(bytes.status())) << bytes.status();
  EXPECT_THAT(bytes.status().message(), HasSubstr("expected at most 1000000 bytes"));
}

}  // namespace
}  // namespace thinwire
