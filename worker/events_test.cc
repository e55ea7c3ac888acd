#include "worker/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

namespace thinwire {
namespace {

using nlohmann::json;

TEST(EventLogTest, JoinedIsOneLine) {
  std::ostringstream out;
  EventLog(out, WorkerId{3}).Joined(Step{17}, "cpu");
  EXPECT_EQ(out.str(), "{\"event\":\"joined\",\"worker\":3,\"step\":17,\"device\":\"cpu\"}\n");
}

TEST(EventLogTest, StepGivesMeansAndBytes) {
  std::ostringstream out;
  EventLog(out, WorkerId{0})
      .Stepped({.step = Step{41},
                .epoch = 2,
                .since_last = {.loss_sum = 8, .correct = 3, .examples = 16},
                .examples = 1312,
                .elapsed = absl::Milliseconds(1930),
                .statistics = {.push_bytes_raw = 40, .push_bytes_encoded = 10, .late_pushes = 1},
                .waiting = "step 41: waits for worker 3"});
  const json line = json::parse(out.str());
  EXPECT_EQ(line["event"], "step");
  EXPECT_EQ(line["step"], 41);
  EXPECT_EQ(line["epoch"], 2);
  EXPECT_EQ(line["loss"], 0.5);
  EXPECT_EQ(line["examples"], 1312);
  EXPECT_EQ(line["seconds"], 1.93);
  EXPECT_EQ(line["push_bytes_raw"], 40);
  EXPECT_EQ(line["push_bytes_encoded"], 10);
  EXPECT_EQ(line["late_pushes"], 1);
  EXPECT_EQ(line["waiting"], "step 41: waits for worker 3");
}

TEST(EventLogTest, MeanOfNothingAndInfinityAreNull) {
  std::ostringstream out;
  EventLog log(out, WorkerId{0});
  log.Stepped({});
  log.Stepped(
      {.since_last = {.loss_sum = std::numeric_limits<double>::quiet_NaN(), .examples = 1}});
  std::istringstream lines(out.str());
  for (std::string text; std::getline(lines, text);) {
    EXPECT_TRUE(json::parse(text)["loss"].is_null()) << text;
  }
}

TEST(EventLogTest, TestFiguresComeFromTheEvaluatorAlone) {
  std::ostringstream out;
  EventLog log(out, WorkerId{1});
  log.FinishedEpoch(
      {.epoch = 0, .train = {.loss_sum = 6, .examples = 3}, .statistics = {.sent_bytes = 70}});
  json line = json::parse(out.str());
  EXPECT_EQ(line["train_loss"], 2);
  EXPECT_EQ(line["sent_bytes"], 70);
  EXPECT_FALSE(line.contains("test_accuracy"));
  out.str("");
  log.FinishedEpoch({.test = BatchResult{.loss_sum = 5, .correct = 9, .examples = 10}});
  line = json::parse(out.str());
  EXPECT_EQ(line["test_accuracy"], 0.9);
  EXPECT_EQ(line["test_loss"], 0.5);
}

TEST(EventLogTest, DoneHasEveryStatistic) {
  std::ostringstream out;
  EventLog(out, WorkerId{1})
      .Done({.steps = 10,
             .elapsed = absl::Seconds(3),
             .median_step = absl::Milliseconds(250),
             .test = BatchResult{.correct = 1, .examples = 4},
             .statistics = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}});
  const json line = json::parse(out.str());
  EXPECT_EQ(line["median_step_seconds"], 0.25);
  EXPECT_EQ(line["evaluator"], true);
  EXPECT_EQ(line["final_test_accuracy"], 0.25);
  int want = 1;
  for (const char* key : {"push_bytes_raw", "push_bytes_encoded", "pull_bytes_raw",
                          "pull_bytes_encoded", "sent_bytes", "received_bytes", "accepted_pushes",
                          "late_pushes", "repeated_pushes", "refused_pushes", "nonfinite_gradients",
                          "jumped_steps", "lost_put_backs", "differing_replicas", "reconnects"}) {
    EXPECT_EQ(line[key], want++) << key;
  }
}

TEST(EventLogTest, ChosenPushCodecsAreToldWithTheirReasons) {
  std::ostringstream out;
  EventLog log(out, WorkerId{0});
  log.Done({});
  EXPECT_FALSE(json::parse(out.str()).contains("push_codecs"));
  out.str("");
  log.Done({.push_codecs = {{"matrices", "bf16", "thin wire"}, {"vectors", "fp32", "few"}}});
  const json codecs = json::parse(out.str())["push_codecs"];
  ASSERT_EQ(codecs.size(), 2u);
  EXPECT_EQ(codecs[0], (json{{"group", "matrices"}, {"codec", "bf16"}, {"reason", "thin wire"}}));
}

TEST(EventLogTest, TheLossScaleIsToldWhereThereIsOne) {
  std::ostringstream out;
  EventLog log(out, WorkerId{0});
  log.Stepped({});
  EXPECT_FALSE(json::parse(out.str()).contains("loss_scale"));
  LossScale scale({.first = 1024});
  scale.Overflowed();
  for (const auto& tell : {+[](EventLog&to, LossScale s) { to.Stepped({.loss_scale = s}); },
                           +[](EventLog&to, LossScale s) { to.Done({.loss_scale = s}); }}) {
    out.str("");
    tell(log, scale);
    EXPECT_EQ(json::parse(out.str())["loss_scale"], 512);
    EXPECT_EQ(json::parse(out.str())["overflowed_steps"], 1);
  }
}

TEST(EventLogTest, MessageThatIsNotUtf8StaysJson) {
  std::ostringstream out;
  EventLog(out, WorkerId{0}).Failed(absl::NotFoundError("no file \xff"));
  EXPECT_TRUE(json::accept(out.str())) << out.str();
}

}  // namespace
}  // namespace thinwire
