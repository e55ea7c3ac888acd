#include "client/encode/checked_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace thinwire::client {
namespace {

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string Content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Put(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// Reads a file that contains 4 bytes and a number.
absl::Status ReadAll(const std::string& path) {
  absl::StatusOr<CheckedReader> reader = CheckedReader::Open(path);
  if (!reader.ok()) return reader.status();
  std::string text(4, '\0');
  uint64_t number = 0;
  absl::Status status = reader->Read(std::as_writable_bytes(std::span(text)));
  if (status.ok()) status = reader->Get(number);
  if (status.ok()) status = reader->Finish();
  if (status.ok()) {
    EXPECT_EQ(text, "abcd");
    EXPECT_EQ(number, 0x123456789ABCDEFu);
  }
  return status;
}

class CheckedFileTest : public ::testing::Test {
 protected:
  void Write() {
    CheckedWriter writer(path_);
    writer.Write(Bytes("abcd"));
    writer.Put(uint64_t{0x123456789ABCDEF});
    ASSERT_TRUE(writer.Commit().ok());
  }

  const std::string path_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(CheckedFileTest, ACommittedFileCanBeRead) {
  Write();
  EXPECT_EQ(Content(path_).size(), 4u + 8 + 4);
  EXPECT_EQ(ReadAll(path_), absl::OkStatus());
  EXPECT_FALSE(std::ifstream(path_ + ".tmp").good());
}

TEST_F(CheckedFileTest, AnUncommittedFileLeavesTheOldFileUnchanged) {
  Write();
  {
    CheckedWriter writer(path_);
    writer.Write(Bytes("half"));
  }
  EXPECT_EQ(ReadAll(path_), absl::OkStatus());
  EXPECT_FALSE(std::ifstream(path_ + ".tmp").good());
}

TEST_F(CheckedFileTest, EveryFlippedBitAndEveryTruncationIsDetected) {
  Write();
  const std::string whole = Content(path_);
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    Put(path_, damaged);
    EXPECT_TRUE(absl::IsDataLoss(ReadAll(path_))) << "bit " << bit;
  }
  for (size_t length = 0; length < whole.size(); ++length) {
    Put(path_, whole.substr(0, length));
    EXPECT_TRUE(absl::IsDataLoss(ReadAll(path_))) << "length " << length;
  }
  Put(path_, whole + "x");
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(path_)));
}

TEST_F(CheckedFileTest, AMissingFileIsNamed) {
  const absl::Status status = ReadAll(path_);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_NE(std::string(status.message()).find(path_), std::string::npos);
}

TEST_F(CheckedFileTest, CommitReportsAMissingFolder) {
  CheckedWriter writer(path_ + ".no/file");
  writer.Put(uint64_t{1});
  const absl::Status status = writer.Commit();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
}

}  // namespace
}  // namespace thinwire::client
