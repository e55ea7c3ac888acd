#include "cli/hosts/ssh_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// In these tests, ssh is a shell script that runs the command on this machine, and the programs are
// shell scripts, too.
class SshHostsTest : public testing::Test {
 protected:
  static constexpr char kSsh[] =
      "while :; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done\n"
      "if [ \"$1\" = refuses ]; then echo 'ssh: connection refused' >&2; exit 255; fi\n"
      "shift\n"
      "exec sh -c \"$*\"";

  void SetUp() override {
    signals_ = std::move(*Signals::Block());
    dir_ = std::move(*TempDir::Make(testing::TempDir()));
    remote_ = std::move(*TempDir::Make(testing::TempDir()));
    setting_.ssh = {Script("ssh", kSsh)};
    setting_.remote_dir = remote_->PathOf("it's here");
    setting_.plaintext = true;
    for (const char* host : {"host-0", "host-1"}) {
      fs::create_directories(absl::StrCat(dir_->PathOf(host), "/bin"));
      std::ofstream(absl::StrCat(dir_->PathOf(host), "/job.textproto")) << "servers: 2";
    }
  }

  std::string Script(const std::string& path, const std::string& text) {
    EXPECT_TRUE(dir_->WriteFile(path, absl::StrCat("#!/bin/sh\n", text, "\n")).ok());
    fs::permissions(dir_->PathOf(path), fs::perms::owner_all);
    return dir_->PathOf(path);
  }

  SshHosts Hosts(const std::string& text) {
    return SshHosts(*ParseHosts(text, "hosts.txt"), setting_, *signals_, *dir_);
  }

  std::string FolderOf(int host) const {
    return absl::StrCat(setting_.remote_dir, "/", fs::path(dir_->path()).filename().string(), ".",
                        host);
  }

  // Blocks until an event of KIND happens, and returns the first one.
  ProcessEvent Await(ProcessSet& processes, ProcessEvent::Kind kind) {
    for (const absl::Time deadline = absl::Now() + absl::Seconds(60); absl::Now() < deadline;) {
      for (const ProcessEvent& event : processes.Wait(deadline - absl::Now())) {
        if (event.kind == kind) return event;
      }
    }
    ADD_FAILURE() << "no event";
    return {};
  }

  std::unique_ptr<Signals> signals_;
  std::unique_ptr<TempDir> dir_;
  std::unique_ptr<TempDir> remote_;
  SshSetting setting_;
};

TEST_F(SshHostsTest, EachMachineGetsAFolderThatIsRemovedAtTheEnd) {
  setting_.programs = {.server = "true", .worker = "true"};
  SshHosts hosts = Hosts("a servers=1\nb workers=1");
  const absl::Status prepared = hosts.Prepare();
  ASSERT_TRUE(prepared.ok()) << prepared;
  for (int host : {0, 1}) {
    EXPECT_TRUE(fs::exists(absl::StrCat(FolderOf(host), "/job.textproto")));
    EXPECT_EQ(fs::status(FolderOf(host)).permissions() & fs::perms::others_all, fs::perms::none);
  }
  EXPECT_TRUE(hosts.RemoveFolders().ok());
  EXPECT_TRUE(fs::is_empty(setting_.remote_dir));
}

TEST_F(SshHostsTest, EveryMachineThatRefusesIsNamed) {
  setting_.programs = {.server = "true", .worker = "no-such-program"};
  SshHosts hosts = Hosts("refuses servers=1\nb workers=1");
  const absl::Status prepared = hosts.Prepare();
  EXPECT_TRUE(absl::IsUnavailable(prepared)) << prepared;
  EXPECT_EQ(prepared.message(),
            "hosts.txt:1: refuses: ssh: connection refused\n"
            "hosts.txt:2: b: no program no-such-program (expected --copy, --remote_bin_dir or an "
            "installed thinwire)");
  EXPECT_TRUE(hosts.RemoveFolders().ok()) << "no machine has a folder";
}

TEST_F(SshHostsTest, AFreshRunNeedsAnEmptyStateFolder) {
  setting_.programs = {.server = "true", .worker = "true"};
  setting_.state_dir = remote_->PathOf("state");
  EXPECT_TRUE(Hosts("a servers=1 workers=1").Prepare().ok());
  fs::create_directories(setting_.state_dir + "/server-0");
  fs::remove_all(FolderOf(0));
  const absl::Status prepared = Hosts("a servers=1 workers=1").Prepare();
  EXPECT_TRUE(absl::IsInvalidArgument(prepared)) << prepared;
  EXPECT_THAT(std::string(prepared.message()), HasSubstr("--state_dir: not empty"));
}

TEST_F(SshHostsTest, AResumedRunNeedsTheStateOfEveryServer) {
  setting_.programs = {.server = "true", .worker = "true"};
  setting_.state_dir = remote_->PathOf("state");
  setting_.resume = true;
  fs::create_directories(setting_.state_dir + "/server-0");
  const absl::Status prepared = Hosts("a servers=1\nb servers=1 workers=1").Prepare();
  EXPECT_TRUE(absl::IsInvalidArgument(prepared)) << prepared;
  EXPECT_EQ(
      prepared.message(),
      absl::StrCat("hosts.txt:2: b: --resume: no state of an earlier run (expected the folder ",
                   setting_.state_dir, "/server-1, got none)"));
  fs::remove_all(FolderOf(0));
  fs::create_directories(setting_.state_dir + "/server-1");
  EXPECT_TRUE(Hosts("a servers=1\nb servers=1 workers=1").Prepare().ok());
}

TEST_F(SshHostsTest, ProcessesAreNumberedInTheOrderOfTheFile) {
  const std::string program = Script("program", "echo \"$@\"");
  setting_.programs = {.server = program, .worker = program};
  setting_.worker_flags = {"--threads", "2"};
  setting_.output = {.path = "here.safetensors", .keep = "best"};
  const SshHosts hosts = Hosts(
      "a servers=1 workers=1 port=7000 device=cuda:0\n"
      "b servers=2 workers=3 address=10.0.0.2 port=7000 device=cuda:0,cuda:1 data_dir=/data");
  ProcessSet processes(*signals_, dir_->path());
  ASSERT_TRUE(
      processes.Start("server", hosts.ServerCommand(ServerId{2}, {"", "", ""}), SignalPath::kInput)
          .ok());
  EXPECT_EQ(Await(processes, ProcessEvent::Kind::kLine).text,
            absl::StrCat("--config ", FolderOf(1),
                         "/job.textproto --server 2 --listen 10.0.0.2:7001 --insecure"));
  const auto worker = hosts.WorkerCommand(WorkerId{2}, {"x:1", "y:2", "z:3"});
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_TRUE(processes.Start("worker", *worker, SignalPath::kInput).ok());
  EXPECT_EQ(
      Await(processes, ProcessEvent::Kind::kLine).text,
      absl::StrCat("--config ", FolderOf(1),
                   "/job.textproto --worker 2 --addresses x:1,y:2,z:3 --output ", FolderOf(1),
                   "/model.safetensors --keep best --insecure --device cuda:1 --data_dir /data "
                   "--threads 2"));
  EXPECT_THAT(std::string(hosts.WorkerCommand(WorkerId{4}, {"x:1"}).status().message()),
              HasSubstr("worker 4: no machine"));
  EXPECT_THAT(hosts.Describe(),
              testing::ElementsAre("a: server 0, worker 0", "b: servers 1-2, workers 1-3"));
}

TEST_F(SshHostsTest, APythonProgramGetsItsJobAndTheAddresses) {
  const std::string python = Script("python", "env | grep THINWIRE_ | sort; pwd; echo \"$@\"");
  setting_.programs = {.server = Script("server", "cat \"$2\""), .worker = ""};
  setting_.script = {
      .python = python, .folder = fs::canonical(dir_->path()), .command = {"train.py", "a b"}};
  const SshHosts hosts = Hosts("a servers=1 workers=1\nb servers=1 workers=2 data_dir=/data");
  for (int host : {0, 1}) fs::create_directories(FolderOf(host));
  ProcessSet processes(*signals_, dir_->path());
  const auto output_of = [&processes](const std::vector<std::string>& command) {
    EXPECT_TRUE(processes.Start("process", command, SignalPath::kInput).ok());
    std::vector<std::string> lines;
    while (processes.running_count() > 0) {
      for (const ProcessEvent& event : processes.Wait(absl::Seconds(60))) {
        if (event.kind == ProcessEvent::Kind::kLine) lines.push_back(event.text);
      }
    }
    return lines;
  };
  EXPECT_THAT(
      output_of(hosts.ScriptCommand(WorkerId{2})),
      testing::ElementsAre(absl::StrCat("THINWIRE_ADDRESSES_FILE=", FolderOf(1), "/addresses"),
                           absl::StrCat("THINWIRE_CONFIG=", FolderOf(1), "/job.textproto"),
                           "THINWIRE_DATA_DIR=/data", "THINWIRE_INSECURE=1", "THINWIRE_WORKER=2",
                           "THINWIRE_WORKERS=3", setting_.script->folder, "train.py a b"));
  const std::string job = FolderOf(0) + "/program.textproto";
  EXPECT_THAT(output_of(hosts.ScriptCommand(WorkerId{0})),
              testing::Contains(absl::StrCat("THINWIRE_WRITE_JOB=", job)));
  std::ofstream(job) << "servers: 2\nname: \"it's\"\n";
  EXPECT_THAT(output_of(hosts.JobCommand()), testing::ElementsAre("servers: 2", "name: \"it's\""));
  EXPECT_THAT(output_of(hosts.ServerCommand(ServerId{1}, {"", ""}, "name: \"it's\"\n")),
              testing::ElementsAre("name: \"it's\""));
  for (const auto& command : hosts.AddressesCommands({"x:1", "y:2"})) output_of(command);
  for (int host : {0, 1}) {
    std::string addresses;
    std::ifstream(FolderOf(host) + "/addresses") >> addresses;
    EXPECT_EQ(addresses, "x:1,y:2");
  }
}

TEST_F(SshHostsTest, SignalsAndExitCodesArrive) {
  const std::string server = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done";
  setting_.programs = {.server = Script("server", server), .worker = ""};
  const SshHosts hosts = Hosts("a servers=1");
  for (const auto& [signal, end] : {std::pair(SIGTERM, ExitStatus{.code = 3}),
                                    std::pair(SIGKILL, ExitStatus{.code = 0, .signal = SIGKILL})}) {
    ProcessSet processes(*signals_, dir_->path());
    ASSERT_TRUE(
        processes.Start("server", hosts.ServerCommand(ServerId{0}, {""}), SignalPath::kInput).ok());
    EXPECT_EQ(Await(processes, ProcessEvent::Kind::kLine).text, "ready");
    processes.Signal("server", signal);
    EXPECT_EQ(Await(processes, ProcessEvent::Kind::kExit).exit, end);
  }
}

TEST_F(SshHostsTest, ASignalThatEndsAProgramIsAnExitCode) {
  setting_.programs = {.server = Script("server", "kill -9 $$"), .worker = ""};
  ProcessSet processes(*signals_, dir_->path());
  const SshHosts hosts = Hosts("a servers=1");
  ASSERT_TRUE(
      processes.Start("server", hosts.ServerCommand(ServerId{0}, {""}), SignalPath::kInput).ok());
  EXPECT_EQ(Await(processes, ProcessEvent::Kind::kExit).exit, (ExitStatus{.code = 128 + SIGKILL}));
}

TEST_F(SshHostsTest, AProgramEndsWithItsConnection) {
  // The program is in a session of its own, as below sshd, so that the signal to the client does
  // not reach it.
  const std::string server = "trap '' TERM HUP; echo $$; while :; do sleep 0.05; done";
  setting_.programs = {.server = Script("server", server), .worker = ""};
  setting_.ssh = {"setsid", "--wait", Script("ssh", kSsh)};
  const SshHosts hosts = Hosts("a servers=1");
  ProcessSet processes(*signals_, dir_->path());
  ASSERT_TRUE(
      processes.Start("server", hosts.ServerCommand(ServerId{0}, {""}), SignalPath::kInput).ok());
  const std::string pid = Await(processes, ProcessEvent::Kind::kLine).text;
  const int program = static_cast<int>(syscall(SYS_pidfd_open, std::stoi(pid), 0));
  ASSERT_GE(program, 0);
  processes.Signal("server", SIGKILL);
  EXPECT_EQ(Await(processes, ProcessEvent::Kind::kExit).exit.signal, SIGKILL);
  pollfd ended{program, POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 60'000), 1) << "the program still runs";
  close(program);
}

TEST_F(SshHostsTest, TheModelIsFetchedFromTheMachineOfItsWorker) {
  setting_.programs = {.server = "true", .worker = "true"};
  setting_.output.path = dir_->PathOf("here.safetensors");
  SshHosts hosts = Hosts("a servers=1 workers=1\nb workers=1");
  ASSERT_TRUE(hosts.Prepare().ok());
  EXPECT_THAT(std::string(hosts.FetchModel(WorkerId{1}).message()), HasSubstr("model.safetensors"));
  EXPECT_FALSE(fs::exists(setting_.output.path));
  std::ofstream(FolderOf(1) + "/model.safetensors") << "the model";
  ASSERT_TRUE(hosts.FetchModel(WorkerId{1}).ok());
  std::ifstream in(setting_.output.path);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()),
            "the model");
  EXPECT_FALSE(fs::exists(setting_.output.path + ".tmp"));
}

TEST_F(SshHostsTest, AModelThatCannotBeCopiedStaysOnItsMachine) {
  setting_.programs = {.server = "true", .worker = "true"};
  setting_.output.path = dir_->PathOf("no such folder/here.safetensors");
  SshHosts hosts = Hosts("a servers=1 workers=1\nb workers=1");
  ASSERT_TRUE(hosts.Prepare().ok());
  const std::string model = FolderOf(1) + "/model.safetensors";
  std::ofstream(model) << "the model";
  EXPECT_THAT(std::string(hosts.FetchModel(WorkerId{1}).message()),
              testing::EndsWith(absl::StrCat("; the worker's file stays on b: ", model)));
  EXPECT_TRUE(hosts.RemoveFolders().ok());
  EXPECT_FALSE(fs::exists(FolderOf(0)));
  ASSERT_TRUE(fs::exists(model));
  EXPECT_EQ(std::distance(fs::directory_iterator(FolderOf(1)), fs::directory_iterator()), 1)
      << "the credentials are removed";
}

TEST_F(SshHostsTest, AModelThatIsMissingLeavesNoFolder) {
  setting_.programs = {.server = "true", .worker = "true"};
  setting_.output.path = dir_->PathOf("here.safetensors");
  SshHosts hosts = Hosts("a servers=1 workers=1");
  ASSERT_TRUE(hosts.Prepare().ok());
  EXPECT_FALSE(hosts.FetchModel(WorkerId{0}).ok());
  EXPECT_TRUE(hosts.RemoveFolders().ok());
  EXPECT_FALSE(fs::exists(FolderOf(0)));
}

TEST_F(SshHostsTest, AWordIsQuotedForTheShell) {
  EXPECT_EQ(ShellQuoted("a b"), "'a b'");
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace thinwire
