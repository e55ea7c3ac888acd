#include "cli/process/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

struct Pipe {
  int read = -1;
  int write = -1;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  return Pipe{ends[0], ends[1]};
}

struct ChildFiles {
  int input;
  int output;
  int error;
  int failure;  // pipe to which the child writes errno if exec fails
};

// Prepares the child process after fork and executes the program. Between fork and exec in a
// program with threads, only system calls are safe, so this function must not allocate memory.
[[noreturn]] void RunChild(char* const* arguments, const ChildFiles& files, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // prctl asks the kernel to kill the child when the parent ends. If the parent had ended before
  // this call, the kernel would never do so; the child therefore ends itself.
  if (getppid() != parent) _exit(127);
  setpgid(0, 0);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(files.input, 0) >= 0 && dup2(files.output, 1) >= 0 && dup2(files.error, 2) >= 0) {
    execv(arguments[0], arguments);
  }
  const int error = errno;
  (void)!write(files.failure, &error, sizeof(error));
  _exit(127);
}

// Blocks until the child has started the program or has failed to start it. Returns 0 after a
// start, else the errno of the failure.
int ReadFailure(int fd) {
  int error = 0;
  ssize_t count;
  do {
    count = read(fd, &error, sizeof(error));
  } while (count < 0 && errno == EINTR);
  return count == sizeof(error) ? error : 0;
}

}  // namespace

std::string ExitStatus::ToString() const {
  if (signal != 0) return absl::StrCat("killed by signal ", signal, " (", strsignal(signal), ")");
  return absl::StrCat("exit code ", code);
}

absl::StatusOr<std::unique_ptr<Process>> Process::Start(const std::vector<std::string>& arguments,
                                                        SignalPath signal_path) {
  std::vector<int> open;
  absl::Cleanup close_open = [&open] {
    for (int fd : open) close(fd);
  };
  Pipe input;
  if (signal_path == SignalPath::kInput) {
    ASSIGN_OR_RETURN(input, MakePipe());
    open.insert(open.end(), {input.read, input.write});
  } else {
    input.read = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input.read < 0) return absl::ErrnoToStatus(errno, "/dev/null");
    open.push_back(input.read);
  }
  Pipe pipes[3];  // pipes for standard output, standard error and the errno of a failed start
  for (Pipe& pipe : pipes) {
    ASSIGN_OR_RETURN(pipe, MakePipe());
    open.insert(open.end(), {pipe.read, pipe.write});
  }
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "fork");
  if (pid == 0)
    RunChild(words.data(), {input.read, pipes[0].write, pipes[1].write, pipes[2].write}, parent);
  // Parent and child both call setpgid, so that the child's process group exists before either of
  // them continues.
  setpgid(pid, pid);
  std::move(close_open).Cancel();
  for (int fd : {input.read, pipes[0].write, pipes[1].write, pipes[2].write}) close(fd);
  const int failure = ReadFailure(pipes[2].read);
  close(pipes[2].read);
  fcntl(pipes[0].read, F_SETFL, O_NONBLOCK);
  fcntl(pipes[1].read, F_SETFL, O_NONBLOCK);
  if (input.write >= 0) fcntl(input.write, F_SETFL, O_NONBLOCK);
  std::unique_ptr<Process> process(new Process(pid, input.write, pipes[0].read, pipes[1].read));
  if (failure != 0)
    return absl::ErrnoToStatus(failure, absl::StrCat(arguments[0], ": cannot be run"));
  return process;
}

Process::~Process() {
  if (!Poll()) {
    kill(-pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  for (int fd : {input_fd_, output_fd_, error_fd_}) {
    if (fd >= 0) close(fd);
  }
}

void Process::Signal(int number) {
  // `exit_` is set after waitpid(). From then on, the pid may belong to another process, which must
  // not receive the signal.
  if (exit_) return;
  if (input_fd_ < 0 || number == SIGKILL) {
    kill(-pid_, number);
    return;
  }
  const std::string line = absl::StrCat(sigabbrev_np(number), "\n");
  // A process that has closed its input is about to end.
  (void)!write(input_fd_, line.data(), line.size());
}

std::optional<ExitStatus> Process::Poll() {
  siginfo_t ended = {};
  if (exit_ || waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      ended.si_pid != pid_) {
    return exit_;
  }
  // The process has ended. Its remaining descendants are killed before waitpid() releases the pid
  // for reuse.
  kill(-pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  exit_ = WIFSIGNALED(status) ? ExitStatus{.code = 0, .signal = WTERMSIG(status)}
                              : ExitStatus{.code = WEXITSTATUS(status), .signal = 0};
  return exit_;
}

}  // namespace thinwire
