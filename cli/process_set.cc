#include "cli/process_set.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace thinwire {
namespace {

// What is there; OPEN turns false at the end.
std::string ReadAvailable(int fd, bool& open) {
  std::string bytes;
  char buffer[1 << 14];
  // Bounded, so that one chatty child does not starve the others.
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
  const absl::Duration held = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(1));
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(held, absl::Milliseconds(1))));
}

}  // namespace

ProcessSet::ProcessSet(Signals& signals, std::string log_dir)
    : signals_(signals), log_dir_(std::move(log_dir)) {}

ProcessSet::~ProcessSet() {
  // All at once, then the children's destructors wait for one after the other.
  SignalAll(SIGKILL);
}

absl::Status ProcessSet::Start(const std::string& name, const std::vector<std::string>& arguments) {
  auto process = Process::Start(arguments);
  if (!process.ok()) return process.status();
  children_[name].process = std::move(*process);
  return absl::OkStatus();
}

std::vector<ProcessEvent> ProcessSet::Wait(absl::Duration timeout) {
  std::vector<pollfd> files = {{signals_.fd(), POLLIN, 0}};
  for (const auto& [name, child] : children_) {
    if (child.output_open) files.push_back({child.process->output_fd(), POLLIN, 0});
    if (child.errors_open) files.push_back({child.process->error_fd(), POLLIN, 0});
  }
  std::vector<ProcessEvent> events;
  if (poll(files.data(), files.size(), PollMilliseconds(timeout)) <= 0) return events;
  for (auto& [name, child] : children_) {
    ReadOutput(name, child, events);
    ReadErrors(name, child, events);
  }
  for (int number : signals_.Take()) {
    if (number != SIGCHLD) {
      events.push_back({.kind = ProcessEvent::Kind::kSignal,
                        .name = "",
                        .text = "",
                        .exit = {},
                        .signal = number});
    }
  }
  Reap(events);
  return events;
}

void ProcessSet::ReadOutput(const std::string& name, Child& child,
                            std::vector<ProcessEvent>& events) {
  if (!child.output_open) return;
  const std::string bytes = ReadAvailable(child.process->output_fd(), child.output_open);
  std::vector<std::string> lines = child.output.Take(bytes);
  if (!child.output_open) {
    for (std::string& line : child.output.TakeRest()) lines.push_back(std::move(line));
  }
  for (std::string& line : lines) {
    ProcessEvent event;
    event.name = name;
    event.text = std::move(line);
    events.push_back(std::move(event));
  }
}

void ProcessSet::ReadErrors(const std::string& name, Child& child,
                            std::vector<ProcessEvent>& events) {
  if (!child.errors_open) return;
  const std::string bytes = ReadAvailable(child.process->error_fd(), child.errors_open);
  std::vector<std::string> lines = child.errors.Take(bytes);
  if (!child.errors_open) {
    for (std::string& line : child.errors.TakeRest()) lines.push_back(std::move(line));
  }
  for (std::string& line : lines) {
    KeepLog(name, line);
    ProcessEvent event;
    event.kind = ProcessEvent::Kind::kLog;
    event.name = name;
    event.text = std::move(line);
    events.push_back(std::move(event));
  }
}

void ProcessSet::Reap(std::vector<ProcessEvent>& events) {
  for (auto it = children_.begin(); it != children_.end();) {
    auto& [name, child] = *it;
    const auto exit = child.process->Poll();
    if (!exit) {
      ++it;
      continue;
    }
    // What it wrote last; a grandchild may hold the pipes open for ever, so their end is not waited
    // for.
    ReadOutput(name, child, events);
    ReadErrors(name, child, events);
    ProcessEvent event;
    event.kind = ProcessEvent::Kind::kExit;
    event.name = name;
    event.exit = *exit;
    events.push_back(std::move(event));
    it = children_.erase(it);
  }
}

void ProcessSet::KeepLog(const std::string& name, const std::string& line) {
  std::deque<std::string>& tail = tails_[name];
  tail.push_back(line);
  if (tail.size() > kTailLines) tail.pop_front();
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

std::vector<std::string> ProcessSet::Tail(const std::string& name) const {
  const auto tail = tails_.find(name);
  if (tail == tails_.end()) return {};
  return {tail->second.begin(), tail->second.end()};
}

bool IsComplaint(const std::string& log_line) {
  // glog: W1120 23:20:21.123456 ...
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
