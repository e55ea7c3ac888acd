#include "common/files/file_kind.h"

#include <gtest/gtest.h>

#include <string>

namespace thinwire {
namespace {

using std::string_literals::operator""s;

TEST(FileKindTest, KnownKindsAreRecognizedByTheirFirstBytes) {
  EXPECT_EQ(FileKind("\x1f\x8b\x08\x00"s), "a gzip file");
  EXPECT_EQ(FileKind("PK\x03\x04more"s), "a zip archive, such as a TorchScript or PyTorch file");
  EXPECT_EQ(FileKind("\x80\x02}q"s), "a Python pickle, such as an old PyTorch file");
  EXPECT_EQ(FileKind("\x89PNG\r\n"s), "a PNG image");
  EXPECT_EQ(FileKind("\x7f"s + "ELF\x02"s), "an ELF program or library");
  EXPECT_EQ(FileKind("\x00\x00\x08\x03\x00\x00"s), "an IDX file");
  EXPECT_EQ(FileKind("\x10\x00\x00\x00\x00\x00\x00\x00{\"x\""s), "a safetensors file");
  EXPECT_EQ(FileKind(std::string(257, 'a').append("ustar ")), "a tar archive");
}

TEST(FileKindTest, OtherBytesAreABinaryFileOrAText) {
  EXPECT_EQ(FileKind("abc\0def"s), "a binary file");
  EXPECT_EQ(FileKind("\x10\x00\x00\x00\x00\x00\x00\xff{"s), "a binary file");
  EXPECT_EQ(FileKind("servers: 2\n"), "");
  EXPECT_EQ(FileKind("# Gr\xc3\xb6\xc3\x9f"
                     "e\n"),
            "");
  EXPECT_EQ(FileKind(""), "");
}

}  // namespace
}  // namespace thinwire
