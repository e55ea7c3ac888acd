#include "cli/worker_event.h"

#include <gtest/gtest.h>

#include <cmath>

namespace thinwire {
namespace {

using Kind = WorkerEvent::Kind;

WorkerEvent Parse(const std::string& line) {
  const auto event = ParseWorkerEvent(line);
  EXPECT_TRUE(event.ok()) << event.status() << " in " << line;
  return event.ok() ? *event : WorkerEvent();
}

TEST(WorkerEventTest, AStepTellsHowFarAndHowMuch) {
  const WorkerEvent event = Parse(
      R"({"event":"step","worker":3,"step":41,"epoch":1,"loss":0.5,"examples":1312,"seconds":1.9,)"
      R"("push_bytes_raw":400,"push_bytes_encoded":100,"pull_bytes_raw":400,"pull_bytes_encoded":200,)"
      R"("late_pushes":2,"waiting":"step 41: waits for worker 1"})");
  EXPECT_EQ(event.kind, Kind::kStep);
  EXPECT_EQ(event.worker, WorkerId{3});
  EXPECT_EQ(event.step, 41);
  EXPECT_EQ(event.train_loss, 0.5);
  EXPECT_EQ(event.counts.push_bytes_encoded, 100);
  EXPECT_EQ(event.counts.late_pushes, 2);
  EXPECT_EQ(event.text, "step 41: waits for worker 1");
}

TEST(WorkerEventTest, AnEpochHasATestOnlyFromTheEvaluator) {
  EXPECT_EQ(Parse(R"({"event":"epoch","worker":0,"epoch":1,"train_loss":0.4,"test_accuracy":0.9})")
                .test_accuracy,
            0.9);
  EXPECT_FALSE(Parse(R"({"event":"epoch","worker":1,"epoch":1,"train_loss":0.4})").test_accuracy);
  EXPECT_FALSE(
      Parse(R"({"event":"epoch","worker":1,"epoch":1,"test_accuracy":null})").test_accuracy);
}

TEST(WorkerEventTest, DoneHasTheTotals) {
  const WorkerEvent event = Parse(
      R"({"event":"done","worker":0,"steps":10,"seconds":2,"median_step_seconds":0.2,"final_train_loss":null,)"
      R"("final_test_accuracy":0.88,"evaluator":true,"jumped_steps":3,"accepted_pushes":7})");
  EXPECT_EQ(event.step, 10);
  EXPECT_TRUE(std::isnan(event.train_loss));
  EXPECT_EQ(event.test_accuracy, 0.88);
  EXPECT_TRUE(event.evaluator);
  EXPECT_EQ(event.counts.jumped_steps, 3);
  EXPECT_EQ(event.counts.accepted_pushes, 7);
}

TEST(WorkerEventTest, ALossScaleIsThereOnlyWhereTheLossIsScaled) {
  for (const char* kind : {"step", "done"}) {
    const std::string head = std::string(R"({"event":")") + kind + R"(","worker":0)";
    const WorkerEvent event = Parse(head + R"(,"loss_scale":32768.0,"overflowed_steps":3})");
    EXPECT_EQ(event.loss_scale, 32768);
    EXPECT_EQ(event.counts.overflowed_steps, 3);
    EXPECT_EQ(Parse(head + "}").loss_scale, std::nullopt);
  }
}

TEST(WorkerEventTest, DoneHasTheChosenPushCodecs) {
  const WorkerEvent event = Parse(
      R"({"event":"done","worker":0,"push_codecs":[{"group":"matrices","codec":"bf16","reason":"thin"}]})");
  ASSERT_EQ(event.push_codecs.size(), 1u);
  EXPECT_EQ(event.push_codecs[0], (ChosenCodec{"matrices", "bf16", "thin"}));
  for (const char* codecs : {"3", "[3]", R"([{"codec":3}])"}) {
    const std::string line =
        std::string(R"({"event":"done","worker":0,"push_codecs":)") + codecs + "}";
    EXPECT_FALSE(ParseWorkerEvent(line).ok()) << line;
  }
}

TEST(WorkerEventTest, WhatIsNoEventIsAnError) {
  for (const char* line :
       {"", "hello", "[1]", "{}", R"({"event":"step"})", R"({"event":"stop","worker":1})",
        R"({"event":"step","worker":-1})", R"({"event":"step","worker":1,"step":"x"})",
        R"({"event":"step","worker":4294967296})", R"({"event":3,"worker":1})",
        R"({"event":"step","worker":1,"step":99999999999999999999})"}) {
    EXPECT_FALSE(ParseWorkerEvent(line).ok()) << line;
  }
}

TEST(WorkerEventTest, AnErrorSaysWhatCame) {
  EXPECT_EQ(ParseWorkerEvent(R"({"event":"step","worker":1,"step":"x"})").status().message(),
            "step: want a whole number, got \"x\"");
}

}  // namespace
}  // namespace thinwire
