#include "cli/process/process_set.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "common/base/process_setup.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

// Reads the bytes that are available in the pipe `fd`, without blocking. Sets `open` to false at
// the end of the pipe.
std::string ReadAvailable(int fd, bool& open) {
  std::string bytes;
  char buffer[1 << 14];
  // The limit of 256 KiB per call prevents a child with much output from delaying the output of all
  // other children.
  while (open && bytes.size() < (1 << 18)) {
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) {
      open = false;
    } else {
      bytes.append(buffer, static_cast<size_t>(count));
    }
  }
  return bytes;
}

int PollMilliseconds(absl::Duration timeout) {
  const absl::Duration bounded = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(1));
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(bounded, absl::Milliseconds(1))));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Signals>> Signals::Block() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int number : StopSignals()) sigaddset(&set, number);
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return absl::InternalError("pthread_sigmask");
  IgnoreBrokenPipes();
  const int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, "signalfd");
  return std::unique_ptr<Signals>(new Signals(fd));
}

Signals::~Signals() { close(fd_); }

std::vector<int> Signals::Take() {
  std::vector<int> numbers;
  signalfd_siginfo received;
  while (read(fd_, &received, sizeof(received)) == sizeof(received)) {
    numbers.push_back(static_cast<int>(received.ssi_signo));
  }
  return numbers;
}

std::vector<std::string> LineSplitter::Take(std::string_view bytes) {
  std::vector<std::string> lines;
  for (char c : bytes) {
    if (c != '\n') line_.push_back(c);
    if (c == '\n' || line_.size() >= kMaxLineBytes) lines.push_back(std::exchange(line_, {}));
  }
  return lines;
}

std::vector<std::string> LineSplitter::TakeUnterminated() {
  if (line_.empty()) return {};
  return {std::exchange(line_, {})};
}

ProcessSet::ProcessSet(Signals& signals, std::string log_dir)
    : signals_(signals), log_dir_(std::move(log_dir)) {}

ProcessSet::~ProcessSet() {
  // Kills all children now, because the destructors of the Process objects wait for the children
  // one by one.
  SignalAll(SIGKILL);
}

absl::Status ProcessSet::Start(const std::string& name, const std::vector<std::string>& arguments,
                               SignalPath signal_path) {
  ASSIGN_OR_RETURN(children_[name].process, Process::Start(arguments, signal_path));
  last_log_lines_.erase(name);
  return absl::OkStatus();
}

std::vector<ProcessEvent> ProcessSet::Wait(absl::Duration timeout) {
  std::vector<pollfd> files = {{signals_.fd(), POLLIN, 0}};
  for (const auto& [name, child] : children_) {
    if (child.output.open) files.push_back({child.process->output_fd(), POLLIN, 0});
    if (child.errors.open) files.push_back({child.process->error_fd(), POLLIN, 0});
  }
  std::vector<ProcessEvent> events;
  if (poll(files.data(), files.size(), PollMilliseconds(timeout)) <= 0) return events;
  for (auto& [name, child] : children_) ReadPipes(name, child, events);
  for (int number : signals_.Take()) {
    if (number == SIGCHLD) continue;
    ProcessEvent event;
    event.kind = ProcessEvent::Kind::kSignal;
    event.signal = number;
    events.push_back(std::move(event));
  }
  Reap(events);
  return events;
}

void ProcessSet::ReadPipes(const std::string& name, Child& child,
                           std::vector<ProcessEvent>& events) {
  const auto read_lines = [](int fd, Pipe& pipe) {
    std::vector<std::string> lines;
    if (!pipe.open) return lines;
    lines = pipe.splitter.Take(ReadAvailable(fd, pipe.open));
    if (!pipe.open) {
      for (std::string& line : pipe.splitter.TakeUnterminated()) lines.push_back(std::move(line));
    }
    return lines;
  };
  const auto add_events = [&](ProcessEvent::Kind kind, std::vector<std::string> lines) {
    for (std::string& line : lines) {
      if (kind == ProcessEvent::Kind::kLog) KeepLog(name, line);
      ProcessEvent event;
      event.kind = kind;
      event.name = name;
      event.text = std::move(line);
      events.push_back(std::move(event));
    }
  };
  // The log is read first, so a line of the output precedes every log line that the child wrote
  // after it.
  std::vector<std::string> log = read_lines(child.process->error_fd(), child.errors);
  add_events(ProcessEvent::Kind::kLine, read_lines(child.process->output_fd(), child.output));
  add_events(ProcessEvent::Kind::kLog, std::move(log));
}

void ProcessSet::Reap(std::vector<ProcessEvent>& events) {
  for (auto it = children_.begin(); it != children_.end();) {
    auto& [name, child] = *it;
    const auto exit = child.process->Poll();
    if (!exit) {
      ++it;
      continue;
    }
    // Reads the ended child's remaining output, but does not wait until its pipes close, because a
    // descendant may keep the pipes open.
    ReadPipes(name, child, events);
    ProcessEvent event;
    event.kind = ProcessEvent::Kind::kExit;
    event.name = name;
    event.exit = *exit;
    events.push_back(std::move(event));
    it = children_.erase(it);
  }
}

void ProcessSet::KeepLog(const std::string& name, const std::string& line) {
  if (!line.empty()) last_log_lines_[name] = line;
  std::ofstream(log_dir_ + "/" + name + ".log", std::ios::app) << line << '\n';
}

void ProcessSet::Signal(const std::string& name, int number) {
  const auto child = children_.find(name);
  if (child != children_.end()) child->second.process->Signal(number);
}

void ProcessSet::SignalAll(int number) {
  for (auto& [name, child] : children_) child.process->Signal(number);
}

bool ProcessSet::running(const std::string& name) const { return children_.contains(name); }

std::string ProcessSet::LastLogLine(const std::string& name) const {
  const auto line = last_log_lines_.find(name);
  return line == last_log_lines_.end() ? "" : line->second;
}

bool IsWarningOrError(const std::string& log_line) {
  // Recognizes a warning or error line of glog, such as "W1120 23:20:21.123456 ...".
  if (log_line.size() > 5 && std::string("WEF").find(log_line[0]) != std::string::npos &&
      std::all_of(log_line.begin() + 1, log_line.begin() + 5, absl::ascii_isdigit)) {
    return true;
  }
  for (const char* word : {"warning", "error", "fatal"}) {
    if (absl::StartsWithIgnoreCase(log_line, word)) return true;
  }
  return absl::StrContains(log_line, "error: ");
}

}  // namespace thinwire
