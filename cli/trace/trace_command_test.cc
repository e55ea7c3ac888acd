#include "cli/trace/trace_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/process/temp_dir.h"
#include "common/time/clock.h"
#include "common/time/trace.h"

namespace thinwire {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// The clock of a process whose time differs from the true time.
class ShiftedClock final : public Clock {
 public:
  ShiftedClock(Clock& clock, absl::Duration shift) : clock_(clock), shift_(shift) {}
  absl::Time Now() override { return clock_.Now() + shift_; }

 private:
  Clock& clock_;
  const absl::Duration shift_;
};

// A process of a job that is traced.
struct TracedProcess {
  TracedProcess(const std::string& name, Clock& truth, absl::Duration shift)
      : name(name), clock(truth, shift), tracer(name, clock) {}

  const std::string name;
  ShiftedClock clock;
  Tracer tracer;
};

class TraceCommandTest : public testing::Test {
 protected:
  TraceCommandTest() : dir_(std::move(*TempDir::Make(testing::TempDir()))) {
    clock_.Advance(absl::Seconds(1'700'000'000));
  }

  // WORKER calls SERVER. The request and the reply take these times.
  void Heartbeat(TracedProcess& worker, TracedProcess& server, absl::Duration there,
                 absl::Duration back) {
    const absl::Time sent = worker.tracer.Now();
    clock_.Advance(there);
    const absl::Time answered = server.tracer.Now();
    clock_.Advance(back);
    worker.tracer.AddClockSample(server.name, sent, worker.tracer.Now(), answered);
  }
  static void Mark(TracedProcess& process, uint64_t step) {
    TraceSpan span(&process.tracer, "lane", "mark", {.step = Step{step}});
  }
  std::string Write(const TracedProcess& process) {
    const std::string path = dir_->PathOf(process.name + ".json");
    EXPECT_EQ(process.tracer.Write(path), absl::OkStatus());
    return path;
  }
  json Read(const std::string& path) {
    std::ifstream in(path);
    return json::parse(in);
  }

  ManualClock clock_;
  std::unique_ptr<TempDir> dir_;
};

TEST_F(TraceCommandTest, ProcessesWithDifferentClocksAreAlignedWithinTheirRoundTrips) {
  TracedProcess lead("server 0", clock_, absl::ZeroDuration());
  TracedProcess server("server 1", clock_, absl::Hours(5));
  TracedProcess near("worker 0", clock_, -absl::Seconds(3));
  TracedProcess far("worker 1", clock_, absl::Milliseconds(700));
  // All of the round trip is in one direction, which is the worst case.
  Heartbeat(near, lead, absl::Microseconds(200), absl::ZeroDuration());
  Heartbeat(near, server, absl::ZeroDuration(), absl::Microseconds(300));
  Heartbeat(far, lead, absl::Milliseconds(40), absl::ZeroDuration());
  Heartbeat(far, server, absl::Milliseconds(40), absl::ZeroDuration());
  std::vector<std::string> files;
  for (uint64_t step = 0; step < 5; ++step) {
    for (TracedProcess* process : {&lead, &server, &near, &far}) Mark(*process, step);
    clock_.Advance(absl::Seconds(1));
  }
  for (TracedProcess* process : {&lead, &server, &near, &far}) files.push_back(Write(*process));
  const std::string out = dir_->PathOf("merged.json");
  const auto merged = MergeTraces(files, out);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->process_count, 4u);
  EXPECT_THAT(merged->unaligned, ElementsAre());

  const json trace = Read(out);
  std::map<uint64_t, std::vector<int64_t>> times;  // by process; a mark per second
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") times[event["pid"].get<uint64_t>()].push_back(event["ts"]);
  }
  ASSERT_EQ(times.size(), 4u);
  // The worst errors: half of the round trips of the chain, and of the rounding to microseconds.
  const int64_t errors[] = {0, 250 + 2, 100 + 1, 20'000 + 1};
  for (uint64_t process = 1; process <= 4; ++process) {
    ASSERT_EQ(times[process].size(), 5u);
    for (size_t step = 0; step < 5; ++step) {
      EXPECT_LE(std::abs(times[process][step] - times[1][step]), errors[process - 1])
          << "process " << process;
    }
  }
  EXPECT_EQ(trace["otherData"]["processes"][1]["process"], "server 1");
  EXPECT_EQ(trace["otherData"]["processes"][1]["round_trip_us"], 500);
}

TEST_F(TraceCommandTest, TheFirstSpanIsAtTimeZeroAndProcessesHaveNumbersOfTheirOwn) {
  TracedProcess lead("server 0", clock_, absl::ZeroDuration());
  TracedProcess worker("worker 0", clock_, absl::ZeroDuration());
  Heartbeat(worker, lead, absl::ZeroDuration(), absl::ZeroDuration());
  Mark(lead, 0);
  clock_.Advance(absl::Seconds(2));
  Mark(worker, 0);
  const std::string out = dir_->PathOf("merged.json");
  ASSERT_TRUE(MergeTraces({Write(worker), Write(lead)}, out).ok());
  std::map<int, int64_t> times;
  std::map<int, std::string> names;
  const json trace = Read(out);
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") times[event["pid"].get<int>()] = event["ts"];
    if (event["name"] == "process_name") {
      names[event["pid"].get<int>()] = event["args"]["name"].get<std::string>();
    }
  }
  EXPECT_EQ(times, (std::map<int, int64_t>{{1, 0}, {2, 2'000'000}}));
  EXPECT_EQ(names, (std::map<int, std::string>{{1, "server 0"}, {2, "worker 0"}}));
}

TEST_F(TraceCommandTest, AProcessWithoutAMeasuredClockIsNamed) {
  TracedProcess lead("server 0", clock_, absl::ZeroDuration());
  TracedProcess other("server 1", clock_, absl::ZeroDuration());
  Mark(lead, 0);
  Mark(other, 0);
  const std::string out = dir_->PathOf("merged.json");
  std::ostringstream text;
  std::ostringstream errors;
  EXPECT_EQ(RunTraceMerge({.out = out, .files = {Write(lead), Write(other)}}, text, errors),
            ExitCode::kOk);
  EXPECT_EQ(text.str(),
            absl::StrCat(out,
                         ": the trace of 2 processes; the clocks of server 1 are not aligned, "
                         "because no worker has measured them\n"));
}

TEST_F(TraceCommandTest, AFileThatIsNoTraceIsRefused) {
  std::ostringstream text;
  const std::string out = dir_->PathOf("merged.json");
  int refused_count = 0;
  for (
      const char* content :
      {"", "{", "[]", "7", "{}", R"({"traceEvents":[],"otherData":{}})",
       R"({"traceEvents":[],"otherData":{"process":1,"dropped_spans":0,"clocks":[]}})",
       R"({"traceEvents":[7],"otherData":{"process":"a","dropped_spans":0,"clocks":[]}})",
       R"({"traceEvents":[{"ph":"X","ts":"a"}],"otherData":{"process":"a","dropped_spans":0,"clocks":[]}})",
       R"({"traceEvents":[],"otherData":{"process":"a","dropped_spans":0,"clocks":[{"process":"b"}]}})",
       R"({"traceEvents":[],"otherData":{"process":"a","dropped_spans":"x","clocks":[]}})",
       R"({"traceEvents":[{"ph":"X","ts":1e300}],"otherData":{"process":"a","dropped_spans":0,"clocks":[]}})",
       R"({"traceEvents":[],"otherData":{"process":"a","dropped_spans":0,
            "clocks":[{"process":"b","offset_us":1,"round_trip_us":-1}]}})"}) {
    ASSERT_TRUE(dir_->WriteFile("bad.json", content).ok());
    std::ostringstream errors;
    EXPECT_EQ(RunTraceMerge({.out = out, .files = {dir_->PathOf("bad.json")}}, text, errors),
              ExitCode::kConfig)
        << content;
    EXPECT_THAT(errors.str(), HasSubstr("bad.json: not the trace of a process (expected"));
    ++refused_count;
  }
  EXPECT_EQ(refused_count, 13);
  ASSERT_TRUE(
      dir_->WriteFile("bad.json", R"({"traceEvents":[],"otherData":{"processes":[]}})").ok());
  std::ostringstream of_merged;
  EXPECT_EQ(RunTraceMerge({.out = out, .files = {dir_->PathOf("bad.json")}}, text, of_merged),
            ExitCode::kConfig);
  EXPECT_THAT(of_merged.str(), HasSubstr("got a merged trace)"));
  std::ostringstream errors;
  EXPECT_EQ(RunTraceMerge({.out = out, .files = {dir_->PathOf("absent.json")}}, text, errors),
            ExitCode::kConfig);
  EXPECT_THAT(errors.str(), HasSubstr("absent.json: cannot be read: No such file or directory"));
  EXPECT_EQ(text.str(), "");
}

}  // namespace
}  // namespace thinwire
