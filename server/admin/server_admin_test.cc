#include "server/admin/server_admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/time/virtual_time.h"
#include "common/tls/credentials_watch.h"
#include "proto/control.pb.h"

namespace thinwire {
namespace {

// The labels of every metric.
const std::string kLabels = "job_name=\"mnist\",role=\"server\"";

using testing::HasSubstr;
using testing::StartsWith;

StatusReply ReplyOf(uint64_t accepted) {
  StatusReply reply;
  reply.set_job("mnist");
  reply.set_accepted_pushes(accepted);
  return reply;
}

// A source that replies at once.
StatusSource Answering(ServerId server, uint64_t accepted) {
  return {server, [accepted](StatusSource::Done done) { done(ReplyOf(accepted)); }};
}

class ServerAdminTest : public testing::Test {
 protected:
  ServerAdminTest() {
    auto admin = ServerAdmin::Start("127.0.0.1:0", "mnist", credentials_, ServerId{0}, clock_);
    EXPECT_TRUE(admin.ok()) << admin.status();
    admin_ = *std::move(admin);
  }

  ManualClock clock_;
  VirtualTime time_;
  const CredentialsLog credentials_{"", time_, clock_};
  std::unique_ptr<ServerAdmin> admin_;
};

TEST_F(ServerAdminTest, AServerThatRecoversIsHealthyAndNotReady) {
  EXPECT_THAT(admin_->address(), StartsWith("127.0.0.1:"));
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(admin_->Healthz().status, 200u);
  EXPECT_EQ(admin_->Readyz().status, 503u);
  EXPECT_THAT(admin_->Page().body, HasSubstr("This server is starting."));
  EXPECT_THAT(admin_->Metrics().body, HasSubstr("\nthinwire_ready{" + kLabels + "} 0\n"));
  const auto status = nlohmann::json::parse(admin_->StatusJson().body);
  EXPECT_EQ(status["ready"], false);
  EXPECT_EQ(status["state"], "starting");
}

TEST_F(ServerAdminTest, AServerThatEndsIsStoppingAndOneThatRestartsIsStarting) {
  const auto state = [this] { return nlohmann::json::parse(admin_->StatusJson().body)["state"]; };
  admin_->Show({Answering(ServerId{0}, 5)});
  admin_->Hide(/*restarts=*/true);
  EXPECT_EQ(state(), "starting");
  admin_->Show({Answering(ServerId{0}, 5)});
  admin_->Hide(/*restarts=*/false);
  EXPECT_EQ(state(), "stopping");
  EXPECT_THAT(admin_->Page().body, HasSubstr("This server is stopping."));
  EXPECT_THAT(admin_->Metrics().body,
              HasSubstr("\nthinwire_job_state{state=\"stopping\"," + kLabels + "} 1\n"));
}

TEST_F(ServerAdminTest, AFailedCallMakesItsServerUnreachable) {
  absl::Notification asked;
  admin_->Show(
      {Answering(ServerId{0}, 5),
       {ServerId{1}, [](StatusSource::Done done) { done(absl::UnavailableError("gone")); }},
       {ServerId{2}, [&asked](StatusSource::Done) { asked.Notify(); }}});
  asked.WaitForNotification();
  const auto status = nlohmann::json::parse(admin_->StatusJson().body);
  EXPECT_EQ(status["servers_unreachable"], nlohmann::json::array({1}));
  EXPECT_THAT(admin_->Page().body, HasSubstr("<dd>1 of 3</dd>"));
}

TEST_F(ServerAdminTest, TheLeadShowsAllServersAndExportsItsOwnFigures) {
  // The watch asks the servers in their order, so the first one has replied when the last one is
  // asked.
  absl::Notification asked;
  admin_->Show({Answering(ServerId{0}, 5),
                Answering(ServerId{1}, 7),
                {ServerId{2}, [&asked](StatusSource::Done) { asked.Notify(); }}});
  asked.WaitForNotification();
  EXPECT_EQ(admin_->Readyz().status, 200u);
  EXPECT_THAT(admin_->Page().body, HasSubstr("thinwire server 0, job mnist"));
  EXPECT_THAT(admin_->Page().body, HasSubstr("<dd>2 of 3</dd>"));
  EXPECT_THAT(
      admin_->Metrics().body,
      HasSubstr("\nthinwire_server_pushes_total{verdict=\"accepted\"," + kLabels + "} 5\n"));
  const auto status = nlohmann::json::parse(admin_->StatusJson().body);
  EXPECT_EQ(status["servers"][1]["status"]["accepted_pushes"], "7");
  EXPECT_EQ(status["summary"]["pushes"]["accepted"], 12);
}

TEST_F(ServerAdminTest, AJobThatDoesNotAnswerIsNotHealthy) {
  absl::Notification asked;
  admin_->Show({{ServerId{0}, [&asked](StatusSource::Done) { asked.Notify(); }}});
  asked.WaitForNotification();
  clock_.Advance(ServerAdmin::kAnswerLimit);
  EXPECT_EQ(admin_->Healthz().status, 200u);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(admin_->Healthz().status, 503u);
  EXPECT_THAT(admin_->Healthz().body, HasSubstr("has not answered for 11 s"));
  admin_->Hide(/*restarts=*/false);
  EXPECT_EQ(admin_->Healthz().status, 200u);
  EXPECT_EQ(admin_->Readyz().status, 503u);
}

TEST_F(ServerAdminTest, ASilentPeerDoesNotMakeTheServerUnhealthy) {
  absl::Notification asked;
  admin_->Show(
      {Answering(ServerId{0}, 5), {ServerId{1}, [&asked](StatusSource::Done) { asked.Notify(); }}});
  asked.WaitForNotification();
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(admin_->Healthz().status, 200u);
}

}  // namespace
}  // namespace thinwire
