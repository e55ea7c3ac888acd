#include "cli/train/train_admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "proto/worker_event.pb.h"

namespace thinwire {
namespace {

// The labels of every metric.
const std::string kLabels = "job_name=\"mnist\",role=\"train\"";

using testing::HasSubstr;

JobConfig TwoWorkers() {
  JobConfig config;
  config.set_name("mnist");
  config.set_servers(2);
  config.mutable_consistency()->set_workers(2);
  return config;
}

WorkerEvent StepOf(uint32_t worker, uint64_t step, double loss) {
  WorkerEvent event;
  event.set_worker(worker);
  event.mutable_step()->set_step(step);
  event.mutable_step()->set_loss(loss);
  event.mutable_step()->mutable_counters()->set_push_bytes_raw(4000);
  event.mutable_step()->mutable_counters()->set_push_bytes_encoded(1000);
  return event;
}

StatusReply ReplyOf(uint32_t server, uint64_t accepted) {
  StatusReply reply;
  reply.set_server(server);
  reply.set_accepted_pushes(accepted);
  return reply;
}

TEST(TrainAdminTest, ThePageShowsWorkersCurvesAndServers) {
  ManualClock clock;
  const auto admin = TrainAdmin::Start("127.0.0.1:0", TwoWorkers(), clock);
  ASSERT_TRUE(admin.ok()) << admin.status();
  EXPECT_THAT((*admin)->Metrics().body, HasSubstr("\nthinwire_ready{" + kLabels + "} 0\n"));
  RunRecord record(2);
  record.Apply(StepOf(0, 10, 2.0));
  (*admin)->Update(record, {});
  record.Apply(StepOf(1, 20, 1.0));
  WorkerEvent epoch;
  epoch.mutable_epoch()->set_test_accuracy(0.75);
  record.Apply(epoch);
  (*admin)->Update(record, {ReplyOf(0, 30), ReplyOf(1, 12)});

  const std::string page = (*admin)->Page().body;
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">1</th><td>training</td><td>20</td>"));
  EXPECT_THAT(page, HasSubstr("train loss: 1.5 now, lowest 1.5, highest 2; step 10 to 20"));
  EXPECT_THAT(page, HasSubstr("<dd>0.7500</dd>"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">accepted</th><td>42</td>"));
  EXPECT_THAT(page, HasSubstr("<td>2.0 kB</td><td>8.0 kB</td><td>4.0x</td>"));

  const auto status = nlohmann::json::parse((*admin)->StatusJson().body);
  EXPECT_EQ(status["job"], "mnist");
  EXPECT_EQ(status["workers"][1]["step"], 20);
  EXPECT_EQ(status["servers"][1]["status"]["accepted_pushes"], "12");

  const std::string metrics = (*admin)->Metrics().body;
  EXPECT_THAT(metrics, HasSubstr("\nthinwire_ready{" + kLabels + "} 1\n"));
  EXPECT_THAT(metrics,
              HasSubstr("\nthinwire_train_workers{state=\"training\"," + kLabels + "} 2\n"));
  EXPECT_THAT(metrics, HasSubstr("\nthinwire_train_test_accuracy_ratio{" + kLabels + "} 0.75\n"));
  EXPECT_THAT(metrics, HasSubstr("\nthinwire_worker_push_raw_bytes_total{" + kLabels + "} 8000\n"));
}

TEST(TrainAdminTest, AJobWithoutAccuracyShowsTheTestLoss) {
  ManualClock clock;
  JobConfig config = TwoWorkers();
  config.mutable_task()->set_loss(Task::Loss::script);
  const auto admin = TrainAdmin::Start("127.0.0.1:0", config, clock);
  ASSERT_TRUE(admin.ok()) << admin.status();
  RunRecord record(2);
  record.Apply(StepOf(0, 10, 2.0));
  for (uint32_t number = 0; number < 2; ++number) {
    WorkerEvent epoch;
    epoch.mutable_epoch()->set_epoch(number);
    epoch.mutable_epoch()->set_test_loss(0.5 - 0.25 * number);
    record.Apply(epoch);
  }
  (*admin)->Update(record, {});
  const std::string page = (*admin)->Page().body;
  EXPECT_THAT(page, HasSubstr("<dd>no accuracy</dd>"));
  EXPECT_THAT(page, HasSubstr("<dd>0.2500</dd>"));
  EXPECT_THAT(page, HasSubstr("test loss: 0.25 now, lowest 0.25, highest 0.5; epoch 1 to 2"));
  const auto status = nlohmann::json::parse((*admin)->StatusJson().body);
  EXPECT_EQ(status["test_loss"], 0.25);
  EXPECT_FALSE(status.contains("test_accuracy"));
  const std::string metrics = (*admin)->Metrics().body;
  EXPECT_THAT(metrics, HasSubstr("\nthinwire_train_test_loss{" + kLabels + "} 0.25\n"));
  EXPECT_EQ(metrics.find("accuracy"), std::string::npos);
}

TEST(TrainAdminTest, ARepeatedReplyIsNoNewAnswer) {
  ManualClock clock;
  const auto admin = TrainAdmin::Start("127.0.0.1:0", TwoWorkers(), clock);
  ASSERT_TRUE(admin.ok()) << admin.status();
  const auto age = [&](const StatusReply& reply) {
    (*admin)->Update(RunRecord(2), {reply});
    clock.Advance(absl::Seconds(7));
    (*admin)->Update(RunRecord(2), {reply});
    const auto status = nlohmann::json::parse((*admin)->StatusJson().body);
    return status["servers"][0]["answered_seconds_ago"];
  };
  StatusReply reply = ReplyOf(0, 30);
  EXPECT_EQ(age(reply), 0) << "no worker has joined, so all replies are the same";
  reply.set_sealed(true);
  EXPECT_EQ(age(reply), 7);
}

}  // namespace
}  // namespace thinwire
