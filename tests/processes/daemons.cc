#include "tests/processes/daemons.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "proto/worker_event_json.h"

namespace thinwire {

Daemons::Daemons() {
  auto folder = TempDir::Make(testing::TempDir());
  EXPECT_TRUE(folder.ok()) << folder.status();
  folder_ = *std::move(folder);
  auto signals = Signals::Block();
  EXPECT_TRUE(signals.ok()) << signals.status();
  signals_ = *std::move(signals);
  set_ = std::make_unique<ProcessSet>(*signals_, folder_->path());
}

std::string Daemons::Write(const std::string& name, std::string_view text) {
  const std::string file = absl::StrCat(file_count_++, "_", name);
  const absl::Status status = folder_->WriteFile(file, std::string(text));
  EXPECT_TRUE(status.ok()) << status;
  return folder_->PathOf(file);
}

void Daemons::Start(const std::string& name, const std::string& program,
                    std::vector<std::string> arguments) {
  records_[name] = Record();
  arguments.insert(arguments.begin(), program);
  const absl::Status status = set_->Start(name, arguments);
  ASSERT_TRUE(status.ok()) << status;
}

std::string Daemons::StartServer(const std::string& name, std::string_view job,
                                 const std::vector<std::string>& flags) {
  std::vector<std::string> arguments = {"--config", Write(absl::StrCat(name, ".textproto"), job)};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  Start(name, "server/server", arguments);
  Record& record = records_[name];
  WaitUntil([&record] { return !record.unread.empty() || record.exit.has_value(); });
  if (record.unread.empty()) return "";
  const std::string line = record.unread.front();
  record.unread.pop_front();
  EXPECT_TRUE(absl::StartsWith(line, "listening ")) << line;
  return line.substr(std::string_view("listening ").size());
}

void Daemons::StartServer(uint32_t server, std::string_view job,
                          std::vector<std::string>& addresses, std::vector<std::string> flags) {
  flags.insert(flags.end(), {"--server", absl::StrCat(server), "--listen", addresses[server]});
  if (server == 0) flags.insert(flags.end(), {"--addresses", absl::StrJoin(addresses, ",")});
  addresses[server] = StartServer(absl::StrCat("server", server), job, flags);
  ASSERT_NE(addresses[server], "");
}

void Daemons::StartWorker(const std::string& name, std::string_view job,
                          const std::vector<std::string>& flags) {
  std::vector<std::string> arguments = {"--config", Write(absl::StrCat(name, ".textproto"), job)};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  Start(name, "worker/worker", arguments);
}

void Daemons::Signal(const std::string& name, int number) { set_->Signal(name, number); }

std::optional<WorkerEvent> Daemons::WaitForEvent(const std::string& name,
                                                 const EventMatcher& matches) {
  Record& record = records_[name];
  std::optional<WorkerEvent> found;
  const auto look = [&] {
    while (!found && !record.unread.empty()) {
      auto event = ParseWorkerEvent(record.unread.front());
      record.unread.pop_front();
      if (event.ok() && matches(*event)) found = *std::move(event);
    }
    return found.has_value() || record.exit.has_value();
  };
  WaitUntil(look);
  if (!found) FailWithLogs(absl::StrCat(name, ": printed no matching event"));
  return found;
}

bool Daemons::WaitForLog(const std::string& name, std::string_view text) {
  const Record& record = records_[name];
  const auto found = [&] { return absl::StrContains(record.log, std::string(text)); };
  WaitUntil([&] { return found() || record.exit.has_value(); });
  if (!found()) FailWithLogs(absl::StrCat(name, " did not log \"", std::string(text), "\""));
  return found();
}

ProcessResult Daemons::WaitForEnd(const std::string& name) {
  const Record& record = records_[name];
  if (!WaitUntil([&record] { return record.exit.has_value(); })) {
    FailWithLogs(absl::StrCat(name, ": did not end"));
    return {{.code = -1}, record.output, record.log};
  }
  return {*record.exit, record.output, record.log};
}

ProcessResult Daemons::Run(const std::string& program, std::vector<std::string> arguments) {
  const std::string name = absl::StrCat("run", file_count_++);
  Start(name, program, std::move(arguments));
  return WaitForEnd(name);
}

bool Daemons::WaitUntil(const std::function<bool()>& done) {
  const absl::Time deadline = absl::Now() + kTimeout;
  while (!done()) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    for (const ProcessEvent& event : set_->Wait(left)) {
      Record& record = records_[event.name];
      switch (event.kind) {
        case ProcessEvent::Kind::kLine:
          record.unread.push_back(event.text);
          absl::StrAppend(&record.output, event.text, "\n");
          break;
        case ProcessEvent::Kind::kLog:
          absl::StrAppend(&record.log, event.text, "\n");
          break;
        case ProcessEvent::Kind::kExit:
          record.exit = event.exit;
          break;
        case ProcessEvent::Kind::kSignal:
          break;
      }
    }
  }
  return true;
}

void Daemons::FailWithLogs(const std::string& problem) const {
  std::string logs;
  for (const auto& [name, record] : records_) {
    const auto last = [](const std::string& text) {
      return text.size() < 1500 ? text : text.substr(text.size() - 1500);
    };
    absl::StrAppend(&logs, "\n--- ", name,
                    record.exit ? absl::StrCat(" (", record.exit->ToString(), ")") : "", "\n",
                    last(record.log), last(record.output));
  }
  ADD_FAILURE() << problem << logs;
}

nlohmann::json ReadReport(const std::string& path) {
  std::ifstream file(path);
  nlohmann::json report = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(report.is_object()) << path << ": not a report";
  return report;
}

pid_t FindProcess(const std::vector<std::string>& words) {
  for (const auto& folder : std::filesystem::directory_iterator("/proc")) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(folder.path().filename().string(), &pid)) continue;
    std::ifstream in(folder.path() / "cmdline", std::ios::binary);
    std::string line((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::replace(line.begin(), line.end(), '\0', ' ');
    const bool matches = std::all_of(words.begin(), words.end(), [&](const std::string& word) {
      return absl::StrContains(line, word);
    });
    if (matches) return pid;
  }
  return 0;
}

Daemons::EventMatcher IsEvent(WorkerEvent::EventCase kind) {
  return [kind](const WorkerEvent& event) { return event.event_case() == kind; };
}

Daemons::EventMatcher IsStep(uint64_t at_least) {
  return [at_least](const WorkerEvent& event) {
    return event.has_step() && event.step().step() >= at_least;
  };
}

}  // namespace thinwire
