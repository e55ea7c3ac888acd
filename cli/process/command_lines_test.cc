#include "cli/process/command_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/process/temp_dir.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CommandLinesTest, AProcessGetsTheJobFileItsNumberAndItsAddresses) {
  const Programs programs = {.server = "/bin/server", .worker = "/bin/worker"};
  EXPECT_THAT(ServerCommand(programs, "/t/job.textproto", ServerId{1}, {"", ""}, ""),
              ElementsAre("/bin/server", "--config", "/t/job.textproto", "--server", "1",
                          "--listen", "127.0.0.1:0"));
  EXPECT_THAT(ServerCommand(programs, "/t/job.textproto", ServerId{0}, {"", "a:5"}, ""),
              ElementsAre("/bin/server", "--config", "/t/job.textproto", "--server", "0",
                          "--listen", "127.0.0.1:0", "--addresses", "127.0.0.1:0,a:5"));
  EXPECT_THAT(WorkerCommand(programs, "/t/job.textproto", WorkerId{2}, {"a:7", "a:5"}, {}, ""),
              ElementsAre("/bin/worker", "--config", "/t/job.textproto", "--worker", "2",
                          "--addresses", "a:7,a:5"));
  EXPECT_THAT(
      WorkerCommand(programs, "/t/job.textproto", WorkerId{2}, {"a:7"},
                    {.path = "m.safetensors", .keep = "best"}, "/state"),
      ElementsAre("/bin/worker", "--config", "/t/job.textproto", "--worker", "2", "--addresses",
                  "a:7", "--output", "m.safetensors", "--keep", "best", "--state_dir", "/state"));
  EXPECT_THAT(
      EvaluatorCommand(programs, "/t/job.textproto", "m.safetensors"),
      ElementsAre("/bin/worker", "--config", "/t/job.textproto", "--evaluate", "m.safetensors"));
}

TEST(CommandLinesTest, AServerThatIsStartedAgainGetsItsAddressAndTheFolderOfItsState) {
  const Programs programs = {.server = "/bin/server", .worker = "/bin/worker"};
  EXPECT_THAT(ServerCommand(programs, "/t/job.textproto", ServerId{1}, {"a:7", "a:5"}, "/state"),
              ElementsAre("/bin/server", "--config", "/t/job.textproto", "--server", "1",
                          "--listen", "a:5", "--state_dir", "/state"));
  EXPECT_THAT(ServerCommand(programs, "/t/job.textproto", ServerId{0}, {"a:7", "a:5"}, "/state"),
              ElementsAre("/bin/server", "--config", "/t/job.textproto", "--server", "0",
                          "--listen", "a:7", "--addresses", "a:7,a:5", "--state_dir", "/state"));
}

TEST(CommandLinesTest, TheLaboratoryIsFoundInTheThreeLayouts) {
  const auto dir = *TempDir::Make(testing::TempDir());
  for (const char* name : {"build/experiments", "build/cli", "debian", "bundle"})
    std::filesystem::create_directories(dir->PathOf(name));
  for (const char* name : {"build/cli/thinwire", "build/experiments/laboratory", "debian/thinwire",
                           "debian/thinwire-laboratory", "bundle/thinwire", "bundle/laboratory"}) {
    ASSERT_TRUE(dir->WriteFile(name, "").ok());
    std::filesystem::permissions(dir->PathOf(name), std::filesystem::perms::owner_all);
  }
  EXPECT_EQ(*FindLaboratory(dir->PathOf("build/cli/thinwire"), ""),
            std::filesystem::canonical(dir->PathOf("build/experiments/laboratory")).string());
  EXPECT_EQ(*FindLaboratory(dir->PathOf("debian/thinwire"), ""),
            std::filesystem::canonical(dir->PathOf("debian/thinwire-laboratory")).string());
  EXPECT_EQ(*FindLaboratory("/nowhere", dir->PathOf("bundle")), dir->PathOf("bundle/laboratory"));
  EXPECT_THAT(std::string(FindLaboratory("/nowhere", dir->path()).status().message()),
              testing::AllOf(HasSubstr("--bin_dir: no program laboratory"),
                             HasSubstr("`bazel build //experiments:laboratory` makes it")));
}

TEST(CommandLinesTest, ProgramsAreFoundBesideThisOneOrWhereToldTo) {
  const auto dir = *TempDir::Make(testing::TempDir());
  for (const char* name : {"cli", "server", "worker"})
    std::filesystem::create_directory(dir->PathOf(name));
  for (const char* name : {"cli/thinwire", "server/server", "worker/worker"}) {
    ASSERT_TRUE(dir->WriteFile(name, "").ok());
    std::filesystem::permissions(dir->PathOf(name), std::filesystem::perms::owner_all);
  }
  std::filesystem::create_symlink(dir->PathOf("cli/thinwire"), dir->PathOf("link"));
  const auto beside = FindPrograms(dir->PathOf("link"), "");
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ(beside->worker, std::filesystem::canonical(dir->PathOf("worker/worker")).string());
  EXPECT_EQ(FindPrograms("/nowhere", dir->path())->server, dir->PathOf("server/server"));
  EXPECT_EQ(FindPrograms("/nowhere", dir->PathOf("server")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(CommandLinesTest, ProgramsOfOneFolderFindEachOther) {
  const auto dir = *TempDir::Make(testing::TempDir());
  for (const char* name : {"thinwire", "server", "worker"}) {
    ASSERT_TRUE(dir->WriteFile(name, "").ok());
    std::filesystem::permissions(dir->PathOf(name), std::filesystem::perms::owner_all);
  }
  const auto found = FindPrograms(dir->PathOf("thinwire"), "");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->server, std::filesystem::canonical(dir->PathOf("server")).string());
  EXPECT_EQ(found->worker, std::filesystem::canonical(dir->PathOf("worker")).string());
}

TEST(CommandLinesTest, InstalledProgramsFindEachOther) {
  const auto dir = *TempDir::Make(testing::TempDir());
  for (const char* name : {"thinwire", "thinwire-server", "thinwire-worker", "server"}) {
    ASSERT_TRUE(dir->WriteFile(name, "").ok());
    std::filesystem::permissions(dir->PathOf(name), std::filesystem::perms::owner_all);
  }
  const auto found = FindPrograms(dir->PathOf("thinwire"), "");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->server, std::filesystem::canonical(dir->PathOf("thinwire-server")).string());
  EXPECT_EQ(found->worker, std::filesystem::canonical(dir->PathOf("thinwire-worker")).string());
}

TEST(CommandLinesTest, AMissingProgramIsNamedWithThePlaceLookedAt) {
  const auto dir = *TempDir::Make(testing::TempDir());
  EXPECT_THAT(
      std::string(FindPrograms("", dir->path()).status().message()),
      HasSubstr("--bin_dir: no program server (expected " + dir->path() + "/server/server, " +
                dir->path() + "/thinwire-server or " + dir->path() + "/server)"));
}

TEST(CommandLinesTest, TheNameOfAProcessHasItsNumber) {
  EXPECT_EQ(ServerNamed(NameOf(ServerId{12})), ServerId{12});
  EXPECT_EQ(WorkerNamed(NameOf(WorkerId{3})), WorkerId{3});
  EXPECT_EQ(WorkerNamed("server 3"), std::nullopt);
  EXPECT_EQ(ServerNamed("server x"), std::nullopt);
  EXPECT_EQ(ServerNamed("job"), std::nullopt);
}

TEST(CommandLinesTest, AServerTellsItsAddress) {
  EXPECT_EQ(*ParseListening("listening 127.0.0.1:4711"), "127.0.0.1:4711");
  EXPECT_FALSE(ParseListening("hello").ok());
  EXPECT_FALSE(ParseListening("listening here").ok());
}

}  // namespace
}  // namespace thinwire
