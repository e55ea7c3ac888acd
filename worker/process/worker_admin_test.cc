#include "worker/process/worker_admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/time/virtual_time.h"
#include "common/tls/credentials_watch.h"

namespace thinwire {
namespace {

// The labels of every metric.
const std::string kLabels = "job_name=\"mnist\",role=\"worker\"";

using testing::HasSubstr;
using testing::Not;

class WorkerAdminTest : public testing::Test {
 protected:
  WorkerAdminTest() {
    auto admin = WorkerAdmin::Start("127.0.0.1:0", "mnist", credentials_, WorkerId{3}, clock_);
    EXPECT_TRUE(admin.ok()) << admin.status();
    admin_ = *std::move(admin);
  }

  void Join() {
    WorkerEvent event;
    event.mutable_joined()->set_step(10);
    event.mutable_joined()->set_device("cpu");
    event.mutable_joined()->set_planned_steps(938);
    admin_->Add(event);
  }
  void Step(uint64_t step, double seconds, double loss, const std::string& waiting = "") {
    WorkerEvent event;
    event.mutable_step()->set_step(step);
    event.mutable_step()->set_seconds(seconds);
    event.mutable_step()->set_loss(loss);
    event.mutable_step()->set_examples(step * 64);
    event.mutable_step()->set_waiting(waiting);
    event.mutable_step()->mutable_counters()->set_push_bytes_raw(4000);
    event.mutable_step()->mutable_counters()->set_push_bytes_encoded(1000);
    admin_->Add(event);
  }

  ManualClock clock_;
  VirtualTime time_;
  const CredentialsLog credentials_{"", time_, clock_};
  std::unique_ptr<WorkerAdmin> admin_;
};

TEST_F(WorkerAdminTest, AWorkerThatHasNotJoinedIsNotReady) {
  EXPECT_THAT(admin_->Page().body, HasSubstr("The worker has not joined yet."));
  EXPECT_THAT(admin_->Metrics().body, HasSubstr("\nthinwire_ready{" + kLabels + "} 0\n"));
  Join();
  EXPECT_THAT(admin_->Metrics().body, HasSubstr("\nthinwire_ready{" + kLabels + "} 1\n"));
}

TEST_F(WorkerAdminTest, TheStepTimeIsTheMeanSinceTheLastReport) {
  Join();
  Step(10, 1.0, 2.5);
  EXPECT_THAT(admin_->Metrics().body, Not(HasSubstr("thinwire_worker_step_seconds")));
  Step(14, 3.0, 1.5);
  const std::string metrics = admin_->Metrics().body;
  EXPECT_THAT(metrics, HasSubstr("\nthinwire_worker_step_seconds{" + kLabels + "} 0.5\n"));
  EXPECT_THAT(metrics, HasSubstr("\nthinwire_worker_examples_total{" + kLabels + "} 896\n"));
  EXPECT_THAT(metrics, HasSubstr("\nthinwire_worker_push_raw_bytes_total{" + kLabels + "} 4000\n"));
  EXPECT_THAT(metrics, HasSubstr("\nthinwire_worker_loss{" + kLabels + "} 1.5\n"));
  const std::string page = admin_->Page().body;
  EXPECT_THAT(page, HasSubstr("<dd>14 of 938</dd>"));
  EXPECT_THAT(page, HasSubstr("<dd>500.0 ms</dd>"));
  EXPECT_THAT(page, HasSubstr("loss: 1.5 now, lowest 1.5, highest 2.5; step 10 to 14"));
  EXPECT_THAT(page, HasSubstr("<td>1.0 kB</td><td>4.0 kB</td><td>4.0x</td>"));
}

TEST_F(WorkerAdminTest, AWaitHasItsReasonAndItsTime) {
  Join();
  Step(14, 3.0, 1.5, "step 15: waits for worker 2");
  clock_.Advance(absl::Seconds(4));
  EXPECT_THAT(admin_->Page().body, HasSubstr("Waiting for 4.0 s: step 15: waits for worker 2"));
  EXPECT_THAT(admin_->Metrics().body,
              HasSubstr("\nthinwire_worker_wait_seconds{" + kLabels + "} 4\n"));
  Step(15, 4.0, 1.5);
  EXPECT_THAT(admin_->Page().body, Not(HasSubstr("Waiting")));
  EXPECT_THAT(admin_->Metrics().body,
              HasSubstr("\nthinwire_worker_wait_seconds{" + kLabels + "} 0\n"));
}

TEST_F(WorkerAdminTest, TheStatusHasTheNewestEventOfEachKind) {
  Join();
  Step(14, 3.0, 1.5);
  Step(15, 4.0, 1.25);
  const auto status = nlohmann::json::parse(admin_->StatusJson().body);
  EXPECT_EQ(status["worker"], 3);
  EXPECT_EQ(status["ready"], true);
  EXPECT_EQ(status["joined"]["planned_steps"], "938");
  EXPECT_EQ(status["step"]["step"], "15");
  EXPECT_EQ(status["step_seconds"], 1.0);
}

TEST_F(WorkerAdminTest, AWorkerThatHasLeftIsNotReady) {
  Join();
  WorkerEvent done;
  done.mutable_done()->mutable_counters()->set_late_pushes(7);
  admin_->Add(done);
  EXPECT_THAT(admin_->Metrics().body, HasSubstr("\nthinwire_ready{" + kLabels + "} 0\n"));
  EXPECT_THAT(admin_->Metrics().body,
              HasSubstr("\nthinwire_worker_late_pushes_total{" + kLabels + "} 7\n"));
  EXPECT_THAT(admin_->Page().body, HasSubstr("The worker has left the job."));
}

}  // namespace
}  // namespace thinwire
