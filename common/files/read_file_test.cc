#include "common/files/read_file.h"

#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(ReadFileTest, ReturnsAllBytes) {
  const std::string path = testing::TempDir() + "/bytes";
  const std::string bytes("a\0\r\n\xff", 5);
  std::ofstream(path, std::ios::binary) << bytes;
  const auto read = ReadWholeFile(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, bytes);
}

TEST(ReadFileTest, AnEmptyFileIsNoError) {
  const std::string path = testing::TempDir() + "/empty";
  std::ofstream(path, std::ios::binary).close();
  const auto read = ReadWholeFile(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, "");
}

TEST(ReadFileTest, ErrorsNameThePathAndTheReason) {
  EXPECT_EQ(ReadWholeFile("/nonexistent").status().ToString(),
            "NOT_FOUND: /nonexistent: cannot be read: No such file or directory");
  EXPECT_EQ(ReadWholeFile(testing::TempDir()).status().message(),
            testing::TempDir() + ": cannot be read: Is a directory");
}

}  // namespace
}  // namespace thinwire
