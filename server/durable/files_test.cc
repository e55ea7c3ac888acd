// The contract of Files, checked for both implementations.
#include "server/durable/files.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/testing/faulty_files.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ByteChain Text(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return ByteChain(std::vector<std::byte>(bytes.begin(), bytes.end()));
}

// Runs each test with a new empty folder of the file system GetParam().
class FilesContract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    if (GetParam() == "posix") {
      files_ = std::make_unique<PosixFiles>();
      folder_ = testing::TempDir() + "/files_" + test.substr(0, test.find('/'));
      std::filesystem::remove_all(folder_);
    } else {
      files_ = std::make_unique<FaultyFiles>();
      folder_ = "state";
    }
    ASSERT_TRUE(files_->MakeFolder(folder_).ok());
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  void Write(const std::string& name, const std::string& text) {
    auto file = files_->Create(Path(name));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(Text(text)).ok());
    ASSERT_TRUE((*file)->Sync().ok());
  }

  std::string ReadText(const std::string& name) {
    const auto bytes = files_->Read(Path(name));
    if (!bytes.ok()) return std::string(bytes.status().message());
    EXPECT_LE(bytes->pieces().size(), 1u);
    const std::vector<std::byte> all = bytes->ToVector();
    return std::string(reinterpret_cast<const char*>(all.data()), all.size());
  }

  std::vector<std::string> Names() { return files_->List(folder_).value(); }

  std::unique_ptr<Files> files_;
  std::string folder_;
};

TEST_P(FilesContract, AFileHasTheAppendedBytes) {
  auto file = files_->Create(Path("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  ByteChain two_pieces = Text("one, ");
  two_pieces.Append(Text("two, "));
  EXPECT_TRUE((*file)->Append(two_pieces).ok());
  EXPECT_TRUE((*file)->Append(ByteChain()).ok());
  EXPECT_TRUE((*file)->Append(Text("three")).ok());
  EXPECT_TRUE((*file)->Sync().ok());
  EXPECT_EQ(ReadText("a"), "one, two, three");
}

TEST(PosixFilesTest, OnlyTheUserCanReadWhatItCreates) {
  using std::filesystem::perms;
  PosixFiles files;
  const std::string folder = testing::TempDir() + "/private";
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(files.MakeFolder(folder).ok());
  ASSERT_TRUE(files.Create(folder + "/file").ok());
  EXPECT_EQ(std::filesystem::status(folder).permissions(), perms::owner_all);
  EXPECT_EQ(std::filesystem::status(folder + "/file").permissions(),
            perms::owner_read | perms::owner_write);
}

TEST_P(FilesContract, AChainOfManyPiecesIsWrittenInOrder) {
  ByteChain chain;
  std::string expected;
  for (int i = 0; i < 3000; ++i) {
    const std::string piece = std::to_string(i) + " ";
    expected += piece;
    chain.Append(Text(piece));
  }
  auto file = files_->Create(Path("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append(chain).ok());
  EXPECT_EQ(ReadText("a"), expected);
}

TEST_P(FilesContract, AnEmptyFileIsRead) {
  Write("a", "");
  EXPECT_EQ(ReadText("a"), "");
}

TEST_P(FilesContract, AnExistingFileIsNotCreatedAgain) {
  Write("a", "old");
  const auto again = files_->Create(Path("a"));
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(again.status().message()), HasSubstr(Path("a")));
  EXPECT_EQ(ReadText("a"), "old");
}

TEST_P(FilesContract, AMissingPathIsNotFoundAndNamed) {
  const std::string missing = Path("missing");
  for (const absl::Status& status :
       {files_->Read(missing).status(), files_->List(missing).status(),
        files_->Create(missing + "/a").status(), files_->MakeFolder(missing + "/a"),
        files_->Rename(missing, Path("b")), files_->Link(missing, Path("b")),
        files_->Remove(missing), files_->Truncate(missing, 0), files_->SyncFolder(missing),
        files_->Lock(missing + "/a").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(missing));
  }
}

TEST_P(FilesContract, NamesAreListedInAscendingOrder) {
  EXPECT_THAT(Names(), IsEmpty());
  Write("b", "");
  Write("a", "");
  ASSERT_TRUE(files_->MakeFolder(Path("c")).ok());
  EXPECT_THAT(Names(), ElementsAre("a", "b", "c"));
}

TEST_P(FilesContract, AnExistingFolderIsKept) {
  ASSERT_TRUE(files_->MakeFolder(Path("c")).ok());
  Write("c/a", "text");
  EXPECT_TRUE(files_->MakeFolder(Path("c")).ok());
  EXPECT_EQ(ReadText("c/a"), "text");
  EXPECT_EQ(files_->MakeFolder(Path("c/a")).code(), absl::StatusCode::kAlreadyExists);
}

TEST_P(FilesContract, RenameReplacesAFile) {
  Write("a", "new");
  Write("b", "old");
  ASSERT_TRUE(files_->Rename(Path("a"), Path("b")).ok());
  EXPECT_THAT(Names(), ElementsAre("b"));
  EXPECT_EQ(ReadText("b"), "new");
}

TEST_P(FilesContract, RenameMovesAFolderWithItsFiles) {
  ASSERT_TRUE(files_->MakeFolder(Path("a")).ok());
  Write("a/x", "text");
  ASSERT_TRUE(files_->MakeFolder(Path("b")).ok());
  ASSERT_TRUE(files_->Rename(Path("a"), Path("b")).ok());
  EXPECT_THAT(Names(), ElementsAre("b"));
  EXPECT_EQ(ReadText("b/x"), "text");
  ASSERT_TRUE(files_->MakeFolder(Path("c")).ok());
  EXPECT_FALSE(files_->Rename(Path("c"), Path("b")).ok()) << "the folder b is not empty";
}

TEST_P(FilesContract, AFileWithTwoNamesOutlivesTheFirst) {
  Write("a", "text");
  Write("c", "");
  ASSERT_TRUE(files_->Link(Path("a"), Path("b")).ok());
  EXPECT_EQ(files_->Link(Path("a"), Path("c")).code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(files_->Remove(Path("a")).ok());
  EXPECT_THAT(Names(), ElementsAre("b", "c"));
  EXPECT_EQ(ReadText("b"), "text");
}

TEST_P(FilesContract, OnlyEmptyFoldersAreRemoved) {
  ASSERT_TRUE(files_->MakeFolder(Path("a")).ok());
  Write("a/x", "text");
  EXPECT_FALSE(files_->Remove(Path("a")).ok());
  EXPECT_TRUE(files_->Remove(Path("a/x")).ok());
  EXPECT_TRUE(files_->Remove(Path("a")).ok());
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_P(FilesContract, TruncateKeepsTheFirstBytes) {
  Write("a", "some text");
  ASSERT_TRUE(files_->Truncate(Path("a"), 4).ok());
  EXPECT_EQ(ReadText("a"), "some");
  ASSERT_TRUE(files_->Truncate(Path("a"), 0).ok());
  EXPECT_EQ(ReadText("a"), "");
}

TEST_P(FilesContract, SyncFolderAcceptsAFolderOnly) {
  Write("a", "");
  EXPECT_TRUE(files_->SyncFolder(folder_).ok());
  EXPECT_FALSE(files_->SyncFolder(Path("a")).ok());
}

TEST_P(FilesContract, ALockIsHeldUntilItIsDestroyed) {
  auto lock = files_->Lock(Path("lock"));
  ASSERT_TRUE(lock.ok()) << lock.status();
  const auto second = files_->Lock(Path("lock"));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(Path("lock")));
  lock->reset();
  EXPECT_TRUE(files_->Lock(Path("lock")).ok());
}

TEST_P(FilesContract, AFolderIsNotReadAsAFile) { EXPECT_FALSE(files_->Read(folder_).ok()); }

TEST_P(FilesContract, ReplaceFileWritesTheWholeFileAnew) {
  ASSERT_TRUE(ReplaceFile(*files_, folder_, "a", Text("first")).ok());
  EXPECT_EQ(ReadText("a"), "first");
  Write("a.tmp", "left by an interrupted call");
  ASSERT_TRUE(ReplaceFile(*files_, folder_, "a", Text("2")).ok());
  EXPECT_EQ(ReadText("a"), "2");
  EXPECT_THAT(Names(), ElementsAre("a"));
}

INSTANTIATE_TEST_SUITE_P(All, FilesContract, testing::Values("posix", "faulty"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace thinwire
