#include "common/files/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace thinwire {
namespace {

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string Content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class AtomicFileTest : public ::testing::Test {
 protected:
  const std::string path_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(AtomicFileTest, CommitReplacesTheOldFile) {
  std::ofstream(path_) << "a longer old text";
  AtomicFile file(path_);
  file.Write(Bytes("new "));
  file.Write(Bytes("text"));
  EXPECT_EQ(Content(path_), "a longer old text");
  EXPECT_EQ(file.Commit(), absl::OkStatus());
  EXPECT_EQ(Content(path_), "new text");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
}

TEST_F(AtomicFileTest, WithoutCommitTheOldFileRemains) {
  std::ofstream(path_) << "old";
  AtomicFile(path_).Write(Bytes("new"));
  EXPECT_EQ(Content(path_), "old");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
}

TEST_F(AtomicFileTest, AMissingFolderIsAnErrorFromTheStart) {
  AtomicFile file(path_ + "/none/file");
  EXPECT_TRUE(absl::IsNotFound(file.status())) << file.status();
  file.Write(Bytes("text"));
  EXPECT_TRUE(absl::IsNotFound(file.Commit()));
}

TEST_F(AtomicFileTest, AFileIsReplaceableIfItsFolderIsWritable) {
  EXPECT_EQ(CheckReplaceable(path_), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(path_));
  std::ofstream(path_) << "old";
  EXPECT_EQ(CheckReplaceable(path_), absl::OkStatus());
  EXPECT_EQ(Content(path_), "old");
  EXPECT_TRUE(absl::IsNotFound(CheckReplaceable(path_ + ".none/file")));
  EXPECT_FALSE(CheckReplaceable(path_ + "/file").ok()) << "a file is not a folder";
  EXPECT_TRUE(absl::IsInvalidArgument(CheckReplaceable(::testing::TempDir())));
}

// Expects that AtomicFile writes nothing to PATH.
void ExpectRefused(const std::string& path, const std::string& kind) {
  AtomicFile file(path);
  file.Write(Bytes("new"));
  const absl::Status status = file.Commit();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << path << ": " << status;
  EXPECT_NE(status.message().find(kind), std::string::npos) << status;
}

TEST_F(AtomicFileTest, ALinkIsNeitherFollowedNorReplaced) {
  const std::string target = path_ + ".target";
  std::ofstream(target) << "precious";
  std::filesystem::create_symlink(target, path_ + ".tmp");
  ExpectRefused(path_, ".tmp: not a regular file (expected a regular file or none, got a symbolic");
  EXPECT_TRUE(std::filesystem::is_symlink(path_ + ".tmp"));
  std::filesystem::create_symlink(target, path_ + ".link");
  ExpectRefused(path_ + ".link", "got a symbolic link)");
  EXPECT_TRUE(absl::IsInvalidArgument(CheckReplaceable(path_ + ".link")));
  EXPECT_TRUE(std::filesystem::is_symlink(path_ + ".link"));
  EXPECT_EQ(Content(target), "precious");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(AtomicFileTest, APipeAndADeviceAreNotReplaced) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  ExpectRefused(path_, "got a pipe or a socket)");
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckReplaceable("/dev/null")));
}

TEST_F(AtomicFileTest, AnInterruptedWriteIsReplaced) {
  std::ofstream(path_ + ".tmp") << "left by a killed process";
  AtomicFile file(path_, 0600);
  file.Write(Bytes("new"));
  EXPECT_EQ(file.Commit(), absl::OkStatus());
  EXPECT_EQ(Content(path_), "new");
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0600));
}

TEST_F(AtomicFileTest, AFailedRenameLeavesNoTemporaryFile) {
  std::filesystem::create_directories(path_ + "/folder");
  {
    AtomicFile file(path_);
    EXPECT_FALSE(file.Commit().ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
}

}  // namespace
}  // namespace thinwire
