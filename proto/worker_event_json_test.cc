#include "proto/worker_event_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

WorkerEvent Parse(const std::string& line) {
  const auto event = ParseWorkerEvent(line);
  EXPECT_TRUE(event.ok()) << event.status() << " in " << line;
  return event.ok() ? *event : WorkerEvent();
}

TEST(WorkerEventJsonTest, AnEventIsOneLineWithTheFieldNamesOfTheProto) {
  WorkerEvent event;
  event.set_worker(3);
  event.mutable_joined()->set_step(17);
  event.mutable_joined()->set_device("cpu");
  event.mutable_joined()->set_planned_steps(938);
  EXPECT_EQ(PrintWorkerEvent(event),
            R"({"worker":3,"joined":{"step":"17","device":"cpu","planned_steps":"938"}})");
}

TEST(WorkerEventJsonTest, ZeroCountersArePrinted) {
  WorkerEvent event;
  event.mutable_done()->mutable_counters();
  const std::string line = PrintWorkerEvent(event);
  EXPECT_THAT(line, HasSubstr(R"("late_pushes":"0")"));
  EXPECT_THAT(line, HasSubstr(R"("evaluator":false)"));
}

TEST(WorkerEventJsonTest, AnUnsetLossIsLeftOut) {
  WorkerEvent event;
  event.mutable_step();
  const std::string line = PrintWorkerEvent(event);
  EXPECT_EQ(line.find("\"loss\""), std::string::npos) << line;
  EXPECT_FALSE(Parse(line).step().has_loss());
}

TEST(WorkerEventJsonTest, ALossThatIsNotANumberSurvivesTheLine) {
  WorkerEvent event;
  event.mutable_step()->set_loss(std::numeric_limits<double>::quiet_NaN());
  event.mutable_step()->set_seconds(0.1);
  const WorkerEvent parsed = Parse(PrintWorkerEvent(event));
  EXPECT_TRUE(std::isnan(parsed.step().loss()));
  EXPECT_EQ(parsed.step().seconds(), 0.1);
}

TEST(WorkerEventJsonTest, ParsingReturnsWhatWasPrinted) {
  WorkerEvent event;
  event.set_worker(1);
  WorkerEvent::Done& done = *event.mutable_done();
  done.set_steps(10);
  done.set_median_step_seconds(0.25);
  done.set_evaluator(true);
  done.set_final_test_accuracy(0.88);
  done.set_loss_scale(32768);
  done.mutable_counters()->set_push_bytes_raw(uint64_t{1} << 60);
  WorkerEvent::PushCodec& codec = *done.add_push_codecs();
  codec.set_group("matrices");
  codec.set_codec("bf16");
  codec.set_reason("slow \"wire\"\n");
  const std::string line = PrintWorkerEvent(event);
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  EXPECT_EQ(Parse(line).SerializeAsString(), event.SerializeAsString());
}

TEST(WorkerEventJsonTest, AMessageThatIsNotUtf8StillMakesALine) {
  WorkerEvent event;
  event.mutable_error()->set_message("no file \xff.bin");
  EXPECT_EQ(Parse(PrintWorkerEvent(event)).error().message(), "no file .bin");
}

TEST(WorkerEventJsonTest, UnknownFieldsAreIgnored) {
  EXPECT_EQ(Parse(R"({"worker":2,"new":{"a":[1]},"joined":{"step":4,"new":true}})").joined().step(),
            4);
}

TEST(WorkerEventJsonTest, OtherLinesAreErrors) {
  for (const char* line : {"", "hello", "[1]", "{}", R"({"worker":1})", R"({"worker":1,"stop":{}})",
                           R"({"worker":-1,"joined":{}})", R"({"worker":4294967296,"joined":{}})",
                           R"({"worker":1,"step":41})", R"({"worker":1,"step":{"step":"x"}})",
                           R"({"worker":1,"step":{"step":99999999999999999999}})",
                           R"({"done":{"push_codecs":[3]}})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseWorkerEvent(line).status())) << line;
  }
}

TEST(WorkerEventJsonTest, AnErrorNamesTheField) {
  EXPECT_THAT(std::string(ParseWorkerEvent(R"({"step":{"step":"x"}})").status().message()),
              HasSubstr("step.step"));
}

}  // namespace
}  // namespace thinwire
