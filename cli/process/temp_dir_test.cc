#include "cli/process/temp_dir.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace thinwire {
namespace {

TEST(TempDirTest, TheDirectoryIsPrivateAndRemovedWithItsObject) {
  auto dir = TempDir::Make(testing::TempDir());
  ASSERT_TRUE(dir.ok()) << dir.status();
  const std::string path = (*dir)->path();
  ASSERT_TRUE((*dir)->WriteFile("a", "text").ok());
  std::string text;
  std::ifstream((*dir)->PathOf("a")) >> text;
  EXPECT_EQ(text, "text");
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
  dir->reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TempDirTest, AKeptDirectoryRemains) {
  auto dir = TempDir::Make(testing::TempDir());
  ASSERT_TRUE(dir.ok()) << dir.status();
  const std::string path = (*dir)->path();
  (*dir)->Keep();
  dir->reset();
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(TempDirTest, AMissingParentIsAnError) {
  EXPECT_EQ(TempDir::Make("/nowhere").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace thinwire
