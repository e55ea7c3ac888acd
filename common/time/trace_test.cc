#include "common/time/trace.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

namespace thinwire {
namespace {

using nlohmann::json;

class TracerTest : public testing::Test {
 protected:
  // Returns the spans of TRACER.
  static json SpansOf(const Tracer& tracer) {
    json spans = json::array();
    const json trace = json::parse(tracer.Json());
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] == "X") spans.push_back(event);
    }
    return spans;
  }

  ManualClock clock_;
};

TEST_F(TracerTest, ASpanHasItsTimesInMicroseconds) {
  Tracer tracer("worker 3", clock_);
  clock_.Advance(absl::Seconds(5));
  {
    TraceSpan step(&tracer, "training", "step", {.step = Step{7}});
    clock_.Advance(absl::Microseconds(10));
    TraceSpan encode(&tracer, "training", "encode", {.shard = ShardId{2}, .worker = WorkerId{3}});
    clock_.Advance(absl::Microseconds(20));
  }
  const json spans = SpansOf(tracer);
  ASSERT_EQ(spans.size(), 2u);
  const json& encode = spans[0];  // ended first
  EXPECT_EQ(encode["name"], "encode");
  EXPECT_EQ(encode["ts"], 5'000'010);
  EXPECT_EQ(encode["dur"], 20);
  EXPECT_EQ(encode["args"], json({{"shard", 2}, {"worker", 3}}));
  EXPECT_EQ(spans[1]["dur"], 30);
  EXPECT_EQ(spans[1]["args"]["step"], 7);
  EXPECT_EQ(spans[1]["tid"], encode["tid"]);
}

TEST_F(TracerTest, EachThreadAndEachNumberedLaneIsALaneWithAName) {
  Tracer tracer("server 0", clock_);
  { TraceSpan here(&tracer, "shards", "fold"); }
  std::thread([&] { TraceSpan there(&tracer, "shards", "fold"); }).join();
  tracer.Add({.lane = "push to server", .lane_number = 1, .name = "push"});
  std::set<int> lanes;
  for (const json& span : SpansOf(tracer)) lanes.insert(span["tid"].get<int>());
  EXPECT_EQ(lanes.size(), 3u);
  std::set<std::string> names;
  const json trace = json::parse(tracer.Json());
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") names.insert(event["args"]["name"].get<std::string>());
  }
  EXPECT_EQ(names.size(), 3u);
  EXPECT_TRUE(names.contains("push to server 1"));
}

TEST_F(TracerTest, TheNewestSpansAreKeptAndTheOthersCounted) {
  Tracer tracer("worker 0", clock_, 3);
  for (uint64_t i = 0; i < 8; ++i) {
    tracer.Add({.lane = "training", .name = "step", .labels = {.step = Step{i}}});
  }
  std::set<uint64_t> steps;
  for (const json& span : SpansOf(tracer)) steps.insert(span["args"]["step"].get<uint64_t>());
  EXPECT_EQ(steps, (std::set<uint64_t>{5, 6, 7}));
  EXPECT_EQ(json::parse(tracer.Json())["otherData"]["dropped_spans"], 5);
}

TEST_F(TracerTest, TheOffsetOfTheShortestRoundTripIsKeptForAMinute) {
  Tracer tracer("worker 0", clock_);
  // A call with its round trip in milliseconds. The peer's clock is two seconds ahead; the peer
  // answers at the end of the call.
  const auto call = [&](int round_trip) {
    const absl::Time sent = clock_.Now();
    clock_.Advance(absl::Milliseconds(round_trip));
    tracer.AddClockSample("server 0", sent, clock_.Now(), clock_.Now() + absl::Seconds(2));
  };
  const auto clocks = [&] { return json::parse(tracer.Json())["otherData"]["clocks"]; };
  call(10);
  call(2);
  call(6);
  const json best = {{"process", "server 0"}, {"offset_us", 2'001'000}, {"round_trip_us", 2000}};
  EXPECT_EQ(clocks(), json::array({best}));
  clock_.Advance(Tracer::kOffsetAge);
  call(6);
  EXPECT_EQ(clocks()[0]["round_trip_us"], 6000) << "the offset of drifting clocks is measured anew";
}

TEST_F(TracerTest, TheFileNamesItsProcess) {
  Tracer tracer("worker 3", clock_);
  const std::string path = testing::TempDir() + "/trace.json";
  ASSERT_EQ(tracer.Write(path), absl::OkStatus());
  std::ifstream in(path);
  const json trace = json::parse(in);
  EXPECT_EQ(trace["otherData"]["process"], "worker 3");
  EXPECT_EQ(trace["traceEvents"][0]["args"]["name"], "worker 3");
  EXPECT_FALSE(tracer.Write(testing::TempDir() + "/absent/trace.json").ok());
}

}  // namespace
}  // namespace thinwire
