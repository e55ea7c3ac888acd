// Trains with `thinwire launch` over a real sshd, which listens on two addresses of this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr char kSshd[] = "/usr/sbin/sshd";
constexpr char kHosts[] =
    "127.0.0.1 servers=1 workers=1\n"
    "127.0.0.2 servers=1 workers=1\n";

// Returns a port that no process uses now.
int FreePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  socklen_t length = sizeof(address);
  int port = 0;
  if (bind(socket, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
      getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    port = ntohs(address.sin_port);
  }
  close(socket);
  return port;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Returns a descriptor of the process that runs the program KIND, such as "worker", with the number
// NUMBER and a path that contains FOLDER; -1 if there is none.
int OpenProcess(const std::string& folder, const std::string& kind, const std::string& number) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::vector<std::string> words =
        absl::StrSplit(ReadFile((entry.path() / "cmdline").string()), '\0');
    const auto flag = std::find(words.begin(), words.end(), "--" + kind);
    if (!words.front().ends_with("bin/" + kind) ||
        words.front().find(folder) == std::string::npos || flag == words.end() ||
        *(flag + 1) != number) {
      continue;
    }
    return static_cast<int>(syscall(SYS_pidfd_open, std::stoi(entry.path().filename()), 0));
  }
  return -1;
}

class LaunchTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs::exists(kSshd)) << kSshd << ": not found (expected Debian's openssh-server)";
    ASSERT_TRUE(fs::exists("/usr/bin/ssh")) << "ssh: not found (expected Debian's openssh-client)";
    // The folder in which a privileged sshd isolates its processes.
    if (getuid() == 0) fs::create_directories("/run/sshd");
    for (const char* key : {"host_key", "key"}) {
      const ProcessResult made =
          daemons_.Run("/usr/bin/ssh-keygen", {"-q", "-t", "ed25519", "-N", "", "-f", Path(key)});
      ASSERT_EQ(made.exit, ExitStatus()) << made.log;
    }
    const int port = FreePort();
    daemons_.Start(
        "sshd", kSshd,
        {"-D", "-e", "-f",
         daemons_.Write("sshd_config",
                        absl::StrCat("Port ", port,
                                     "\nListenAddress 127.0.0.1\nListenAddress 127.0.0.2"
                                     "\nHostKey ",
                                     Path("host_key"), "\nAuthorizedKeysFile ", Path("key.pub"),
                                     "\nPidFile none\nStrictModes no\nUsePAM no"
                                     "\nMaxStartups 100\n"))});
    ASSERT_TRUE(daemons_.WaitForLog("sshd", absl::StrCat("on 127.0.0.2 port ", port)));
    std::ofstream(Path("known_hosts")) << "* " << ReadFile(Path("host_key.pub"));
    config_ = daemons_.Write(
        "ssh_config",
        absl::StrCat("IdentityFile ", Path("key"), "\nIdentitiesOnly yes", "\nUserKnownHostsFile ",
                     Path("known_hosts"), "\nHost 127.0.0.*\n  Port ", port,
                     "\nHost nobody\n  HostName 127.0.0.1\n  Port 1\n"));
    // The layout of installed programs in one folder.
    fs::create_directories(Path("bin"));
    for (const char* program : {"server", "worker"}) {
      fs::create_symlink(fs::absolute(absl::StrCat(program, "/", program)),
                         absl::StrCat(Path("bin/"), program));
    }
    fs::create_directories(Path("remote"));
  }

  std::string Path(const std::string& name) const {
    return absl::StrCat(daemons_.folder(), "/", name);
  }

  std::string Job(int epochs) {
    return daemons_.Write(
        "job.textproto",
        absl::StrCat("name: \"train\" servers: 2 consistency { mode: sync workers: 2 ordered_fold: "
                     "true } optimization { optimizer: sgd learning_rate: 0.05 } task { model: "
                     "softmax train_examples: 2000 test_examples: 500 batch_size: 50 epochs: ",
                     epochs, " } report: \"", Path("report.json"), "\""));
  }

  std::vector<std::string> Flags(const std::string& job, const std::string& hosts,
                                 const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"launch",
                                      "--config",
                                      job,
                                      "--hosts",
                                      daemons_.Write("hosts.txt", hosts),
                                      "--ssh",
                                      absl::StrCat("ssh -F ", config_),
                                      "--remote_dir",
                                      Path("remote")};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  Daemons daemons_;
  std::string config_;
};

TEST_F(LaunchTest, AJobOnTwoMachinesTrainsAsOnOne) {
  const ProcessResult init = daemons_.Run("cli/thinwire", {"certs", "init", Path("ca")});
  ASSERT_EQ(init.exit, ExitStatus()) << init.log;
  const std::string job = Job(1);
  const ProcessResult launch = daemons_.Run(
      "cli/thinwire", Flags(job, kHosts,
                            {"--credentials_from", Path("ca"), "--remote_bin_dir", Path("bin"),
                             "--output", Path("model.safetensors"), "--", "--threads", "1"}));
  ASSERT_EQ(launch.exit, ExitStatus()) << launch.log;
  EXPECT_THAT(launch.log, HasSubstr("127.0.0.2: server 1, worker 1\n"));
  EXPECT_THAT(launch.log, HasSubstr("servers 127.0.0.1:"));
  EXPECT_THAT(launch.log, HasSubstr("epoch 0: train loss"));
  EXPECT_THAT(launch.output, HasSubstr("2 of 2 done"));
  EXPECT_THAT(launch.output, HasSubstr(Path("model.safetensors")));
  EXPECT_GT(fs::file_size(Path("model.safetensors")), 784u * 10 * 4);
  EXPECT_TRUE(fs::is_empty(Path("remote"))) << "the machines keep no files of the run";
  const nlohmann::json report = ReadReport(Path("report.json"));
  EXPECT_EQ(report["problems"], nlohmann::json::array());

  const ProcessResult train = daemons_.Run("cli/thinwire", {"train", "--config", job});
  ASSERT_EQ(train.exit, ExitStatus()) << train.log;
  EXPECT_EQ(ReadReport(Path("report.json"))["final_parameters_crc32c"],
            report["final_parameters_crc32c"]);
}

TEST_F(LaunchTest, CredentialsFromOneFolderAreGivenToEachProcess) {
  const auto certs = [this](const std::vector<std::string>& arguments) {
    const ProcessResult run = daemons_.Run("cli/thinwire", arguments);
    EXPECT_EQ(run.exit, ExitStatus()) << run.log;
  };
  const auto issue = [&](const std::string& role, const std::string& name,
                         const std::vector<std::string>& number) {
    std::vector<std::string> arguments = {"certs",  "issue", Path("ca"),
                                          "--role", role,    "--job",
                                          "train",  "--out", Path("certs/") + name};
    arguments.insert(arguments.end(), number.begin(), number.end());
    certs(arguments);
  };
  certs({"certs", "init", Path("ca")});
  issue("server", "server-0", {"--server", "0"});
  issue("server", "server-1", {"--server", "1"});
  issue("worker", "worker", {});  // shared by all workers
  issue("worker", "worker-1", {"--worker", "1"});
  const std::string job = Job(1);
  const std::vector<std::string> flags =
      Flags(job, kHosts, {"--credentials", Path("certs"), "--remote_bin_dir", Path("bin")});
  const ProcessResult refused = daemons_.Run("cli/thinwire", flags);
  EXPECT_EQ(refused.exit, ExitStatus{.code = 78});
  EXPECT_THAT(refused.log, HasSubstr(Path("certs/viewer")));
  issue("viewer", "viewer", {});
  const ProcessResult launch = daemons_.Run("cli/thinwire", flags);
  ASSERT_EQ(launch.exit, ExitStatus()) << launch.log;
  EXPECT_THAT(launch.output, HasSubstr("2 of 2 done"));
  EXPECT_EQ(ReadReport(Path("report.json"))["problems"], nlohmann::json::array());
}

TEST_F(LaunchTest, AStoppedRunGoesOnFromTheStateOnItsMachines) {
  const std::string job = Job(20);
  const auto flags = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = Flags(job, kHosts,
                                           {"--insecure", "--remote_bin_dir", Path("bin"),
                                            "--durability", "log", "--state_dir", Path("state")});
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  };
  const ProcessResult early = daemons_.Run("cli/thinwire", flags({"--resume"}));
  EXPECT_EQ(early.exit, ExitStatus{.code = 78});
  EXPECT_THAT(early.log, HasSubstr(absl::StrCat("--resume: no state of an earlier run (expected "
                                                "the folder ",
                                                Path("state/server-0"), ", got none)")));

  daemons_.Start("launch", "cli/thinwire", flags({"--", "--delay", "5ms"}));
  ASSERT_TRUE(daemons_.WaitForLog("launch", "epoch 0: train loss"));
  daemons_.Signal("launch", SIGINT);
  const ProcessResult stopped = daemons_.WaitForEnd("launch");
  EXPECT_EQ(stopped.exit, ExitStatus{.code = 130}) << stopped.log;
  EXPECT_THAT(stopped.log, HasSubstr(absl::StrCat("The run can go on from its state in ",
                                                  Path("state"), ": add --resume")));

  const ProcessResult again = daemons_.Run("cli/thinwire", flags({}));
  EXPECT_EQ(again.exit, ExitStatus{.code = 78});
  EXPECT_THAT(again.log, HasSubstr("--state_dir: not empty"));

  const ProcessResult resumed = daemons_.Run("cli/thinwire", flags({"--resume"}));
  EXPECT_EQ(resumed.exit, ExitStatus()) << resumed.log;
  EXPECT_THAT(resumed.log, HasSubstr("going on from step "));
  EXPECT_THAT(resumed.log, Not(HasSubstr("going on from step 0\n")));
  EXPECT_THAT(resumed.output, HasSubstr("2 of 2 done"));
}

TEST_F(LaunchTest, APythonProgramTrainsOnTwoMachines) {
  const ProcessResult init = daemons_.Run("cli/thinwire", {"certs", "init", Path("ca")});
  ASSERT_EQ(init.exit, ExitStatus()) << init.log;
  // Debian's Python has NumPy. The machines get the package, so they need not have it.
  setenv("THINWIRE_PYTHON", "/usr/bin/python3", /*replace=*/1);
  const ProcessResult launch = daemons_.Run(
      "cli/thinwire",
      {"launch", "--hosts", daemons_.Write("hosts.txt", kHosts), "--ssh",
       absl::StrCat("ssh -F ", config_), "--remote_dir", Path("remote"), "--copy",
       "--credentials_from", Path("ca"), "--push", "fp8_e5m2", "--work_dir",
       fs::absolute("examples/python").string(), "numpy_regression.py", "--steps", "60"});
  ASSERT_EQ(launch.exit, ExitStatus()) << launch.log << launch.output;
  EXPECT_THAT(launch.log, HasSubstr("127.0.0.2: server 1, worker 1\n"));
  EXPECT_THAT(launch.log, HasSubstr("servers 127.0.0.1:"));
  EXPECT_THAT(launch.output, HasSubstr("worker 1: step 50, loss 0.0"));
  EXPECT_THAT(launch.output, HasSubstr("worker 0: 2 workers, loss 0.0"));
  EXPECT_TRUE(fs::is_empty(Path("remote"))) << "the machines keep no files of the run";
}

TEST_F(LaunchTest, ScaleStartsAWorkerInAFreePlace) {
  daemons_.Start(
      "launch", "cli/thinwire",
      Flags(Job(40),
            absl::StrReplaceAll(kHosts, {{"2 servers=1 workers=1", "2 servers=1 workers=2"}}),
            {"--insecure", "--remote_bin_dir", Path("bin"), "--", "--delay", "5ms"}));
  ASSERT_TRUE(daemons_.WaitForLog("launch", "epoch 0: train loss"));
  const std::string& log = daemons_.LogOf("launch");
  EXPECT_THAT(log, HasSubstr("the job starts with 2 workers; thinwire scale starts the others\n"));
  const size_t begin = log.find("servers 127.0.0.1:") + std::string("servers ").size();
  const std::string addresses = log.substr(begin, log.find('\n', begin) - begin);
  const ProcessResult scale =
      daemons_.Run("cli/thinwire", {"scale", "--addresses", addresses, "--workers", "4"});
  EXPECT_EQ(scale.exit, ExitStatus()) << scale.log;
  const ProcessResult launch = daemons_.WaitForEnd("launch");
  EXPECT_EQ(launch.exit, ExitStatus()) << launch.log;
  EXPECT_THAT(launch.log, HasSubstr("workers 2 -> 4\n"));
  EXPECT_THAT(launch.log, HasSubstr("worker 3: no machine (expected a place in the hosts file"));
  EXPECT_THAT(launch.output, HasSubstr("3 of 3 done"));
}

TEST_F(LaunchTest, ProgramsCanBeCopiedAndALostWorkerIsStartedAgain) {
  daemons_.Start(
      "launch", "cli/thinwire",
      Flags(Job(30), kHosts,
            {"--insecure", "--copy", "--logs", "--lease_seconds", "1", "--", "--delay", "5ms"}));
  ASSERT_TRUE(daemons_.WaitForLog("launch", "epoch 0: train loss"));
  const int worker = OpenProcess(Path("remote"), "worker", "1");
  ASSERT_GE(worker, 0);
  EXPECT_EQ(syscall(SYS_pidfd_send_signal, worker, SIGKILL, nullptr, 0), 0);
  close(worker);
  const ProcessResult launch = daemons_.WaitForEnd("launch");
  EXPECT_EQ(launch.exit, ExitStatus()) << launch.log;
  EXPECT_THAT(launch.log, HasSubstr("worker 1 ended with exit code 137"));
  EXPECT_THAT(launch.log, HasSubstr("; started again (1 of 3 restarts)"));
  EXPECT_THAT(launch.log, HasSubstr("server 0: I")) << "--logs shows all lines";
  EXPECT_THAT(launch.output, HasSubstr("2 of 2 done"));
}

TEST_F(LaunchTest, AMachineThatRefusesIsNamedAndNothingStarts) {
  const ProcessResult launch = daemons_.Run(
      "cli/thinwire", Flags(Job(1), absl::StrReplaceAll(kHosts, {{"127.0.0.2", "nobody"}}),
                            {"--insecure", "--remote_bin_dir", Path("bin")}));
  EXPECT_EQ(launch.exit, ExitStatus{.code = 69});
  EXPECT_THAT(launch.log, HasSubstr("hosts.txt:2: nobody: ssh: connect to host 127.0.0.1 port 1: "
                                    "Connection refused"));
  EXPECT_THAT(launch.log, Not(HasSubstr("hosts.txt:1")));
  EXPECT_TRUE(fs::is_empty(Path("remote")));
}

TEST_F(LaunchTest, WrongFlagsAndCountsAreRefusedBeforeAnyConnection) {
  const std::string job = Job(1);
  const auto log_of = [&](const std::string& hosts, const std::vector<std::string>& more,
                          int code) {
    const ProcessResult launch = daemons_.Run("cli/thinwire", Flags(job, hosts, more));
    EXPECT_EQ(launch.exit, ExitStatus{.code = code});
    return launch.log;
  };
  EXPECT_THAT(
      log_of("127.0.0.1 servers=2 workers=1", {"--insecure"}, 78),
      HasSubstr("hosts.txt: workers: wrong sum (expected at least 2, the value of workers in "
                "the job, got 1)"));
  EXPECT_THAT(log_of("127.0.0.1 servers=2 worker=2", {"--insecure"}, 78),
              HasSubstr("hosts.txt:1: setting: unknown"));
  EXPECT_THAT(
      log_of(kHosts, {}, 64),
      HasSubstr("(expected one of --credentials_from, --credentials and --insecure, got none)"));
  EXPECT_THAT(log_of(kHosts, {"--insecure", "--credentials", "x"}, 64),
              HasSubstr("got --credentials (or THINWIRE_CREDENTIALS), --insecure)"));
  EXPECT_THAT(log_of(kHosts, {"--insecure", "--copi"}, 64),
              HasSubstr("--copi: unknown flag (did you mean --copy?)"));
  EXPECT_THAT(
      log_of(kHosts, {"--insecure", "epochs"}, 64),
      HasSubstr("\"epochs\": not a flag (expected --NAME, or flags of the workers after --)"));
  EXPECT_THAT(log_of(kHosts, {"--insecure", "--state_dir", "/x"}, 64),
              HasSubstr("--state_dir: only valid with durability: checkpoint or log"));
  EXPECT_THAT(log_of(kHosts, {"--credentials", Path("none")}, 78), HasSubstr(Path("none")));
  setenv("SLURM_PROCID", "0", /*replace=*/1);
  setenv("SLURM_STEP_NUM_TASKS", "2", /*replace=*/1);
  EXPECT_THAT(log_of(kHosts, {"--insecure"}, 64),
              HasSubstr("--hosts: not valid under srun with several tasks"));
  unsetenv("SLURM_PROCID");
  unsetenv("SLURM_STEP_NUM_TASKS");
}

// Each of these signals ends `thinwire launch` and all processes on the machines.
class LaunchSignalTest : public LaunchTest, public testing::WithParamInterface<int> {};

TEST_P(LaunchSignalTest, NoProcessRemains) {
  daemons_.Start("launch", "cli/thinwire",
                 Flags(Job(100000), kHosts, {"--insecure", "--remote_bin_dir", Path("bin")}));
  ASSERT_TRUE(daemons_.WaitForLog("launch", "epoch 0: train loss"));
  std::vector<pollfd> processes;
  for (const std::string number : {"0", "1"}) {
    for (const std::string kind : {"server", "worker"}) {
      processes.push_back({OpenProcess(daemons_.folder(), kind, number), POLLIN, 0});
      ASSERT_GE(processes.back().fd, 0) << kind << " " << number;
    }
  }
  daemons_.Signal("launch", GetParam());
  const ProcessResult launch = daemons_.WaitForEnd("launch");
  if (GetParam() == SIGINT) {
    EXPECT_EQ(launch.exit, ExitStatus{.code = 130}) << launch.log;
    EXPECT_THAT(launch.output, HasSubstr("stopped"));
    EXPECT_TRUE(fs::is_empty(Path("remote")));
  } else {
    EXPECT_EQ(launch.exit, (ExitStatus{.code = 0, .signal = SIGKILL}));
  }
  for (pollfd& process : processes) {
    EXPECT_EQ(poll(&process, 1, 60'000), 1) << "a process still runs";
    close(process.fd);
  }
}

INSTANTIATE_TEST_SUITE_P(Signals, LaunchSignalTest, testing::Values(SIGINT, SIGKILL),
                         [](const auto& info) {
                           return std::string(info.param == SIGINT ? "Interrupt" : "Kill");
                         });

}  // namespace
}  // namespace thinwire
