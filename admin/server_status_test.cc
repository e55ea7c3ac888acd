#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "admin/job_summary.h"
#include "admin/server_history.h"
#include "admin/server_json.h"
#include "admin/server_metrics.h"
#include "admin/server_page.h"
#include "proto/counters.h"
#include "proto/precision.pb.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr absl::Time kStart = absl::UnixEpoch();

void AddWorker(uint32_t number, bool live, uint64_t next, double heard, StatusReply& reply) {
  WorkerStatus& worker = *reply.add_workers();
  worker.set_worker(number);
  worker.set_incarnation(number + 7);
  worker.set_live(live);
  worker.set_left(!live);
  worker.set_heard_seconds_ago(heard);
  worker.set_next(next);
}

void AddShard(uint32_t number, uint64_t frontier, StatusReply& reply) {
  ShardStatus& shard = *reply.add_shards();
  shard.set_shard(number);
  shard.set_values(1000);
  shard.set_open(true);
  shard.set_version(frontier + 1);
  shard.set_frontier(frontier);
}

// Returns the status of a server with two shards, whose open steps are STEP and STEP + 1, and three
// workers.
StatusReply ReplyAt(uint64_t step) {
  StatusReply reply;
  reply.set_job("mnist");
  reply.set_mode("ssp");
  reply.set_epoch(5);
  AddShard(0, step, reply);
  AddShard(2, step + 1, reply);
  AddWorker(0, true, step + 1, 0.5, reply);
  AddWorker(1, true, step, 2.5, reply);
  AddWorker(3, false, step, 9, reply);
  reply.set_accepted_pushes(30);
  reply.set_late_pushes(10);
  reply.set_push_payload_bytes(16000);
  reply.set_parameters_payload_bytes(80000);
  (*reply.mutable_staleness())[0] = 20;
  (*reply.mutable_staleness())[3] = 10;
  return reply;
}

// Returns the histories of two servers. The second one is a step behind the first one.
std::vector<ServerHistory> TwoServers() {
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0}), ServerHistory(ServerId{1})};
  servers[0].Add(ReplyAt(42), kStart);
  servers[1].Add(ReplyAt(41), kStart + absl::Seconds(1));
  servers[1].Add(ReplyAt(41), kStart + absl::Seconds(4));
  return servers;
}

TEST(ServerHistoryTest, TheOpenStepHasAnAge) {
  ServerHistory server(ServerId{0});
  EXPECT_EQ(server.latest(), nullptr);
  server.Add(ReplyAt(41), kStart);
  server.Add(ReplyAt(41), kStart + absl::Seconds(1));
  EXPECT_EQ(server.step(), 41u);
  EXPECT_EQ(server.step_age(), absl::Seconds(1));
  EXPECT_EQ(server.answered(), kStart + absl::Seconds(1));
  server.Add(ReplyAt(42), kStart + absl::Seconds(2));
  EXPECT_EQ(server.step(), 42u);
  EXPECT_EQ(server.step_age(), absl::ZeroDuration());
}

TEST(ServerHistoryTest, ARecoveryReplaysTheLogSinceTheCheckpoint) {
  const auto reply = [](uint64_t epoch, uint64_t records, uint64_t checkpoints) {
    StatusReply status;
    status.set_epoch(epoch);
    status.set_log_records(records);
    status.set_log_bytes(records * 100);
    status.set_checkpoints(checkpoints);
    return status;
  };
  ServerHistory server(ServerId{0});
  server.Add(reply(5, 10, 0), kStart);
  EXPECT_EQ(server.checkpointed(), std::nullopt);
  EXPECT_EQ(server.replay_record_count(), 10u);
  server.Add(reply(5, 12, 1), kStart + absl::Seconds(1));
  server.Add(reply(5, 20, 1), kStart + absl::Seconds(2));
  EXPECT_EQ(server.checkpointed(), kStart + absl::Seconds(1));
  EXPECT_EQ(server.replay_record_count(), 8u);
  EXPECT_EQ(server.replay_bytes(), 800u);
  // A new process of the server counts from 0.
  server.Add(reply(6, 3, 0), kStart + absl::Seconds(3));
  EXPECT_EQ(server.checkpointed(), std::nullopt);
  EXPECT_EQ(server.replay_record_count(), 3u);
}

TEST(JobSummaryTest, FiguresOfAllServersAreCombined) {
  const auto servers = TwoServers();
  const JobSummary summary = SummaryOf(servers, kStart + absl::Seconds(5));
  EXPECT_EQ(summary.job, "mnist");
  EXPECT_EQ(summary.answered_count, 2u);
  EXPECT_EQ(summary.step, 41u);
  EXPECT_EQ(summary.step_age, absl::Seconds(3));
  EXPECT_EQ(summary.worker_count, 3u);
  EXPECT_THAT(summary.live, ElementsAre(0, 1));
  EXPECT_THAT(summary.unfinished, ElementsAre(1));
  EXPECT_EQ(summary.verdicts.at("accepted"), 60u);
  EXPECT_EQ(summary.verdicts.at("late"), 20u);
  EXPECT_EQ(summary.staleness.at(3), 20u);
  EXPECT_EQ(summary.mean_staleness, 1);
  EXPECT_EQ(summary.push_bytes, 32000u);
  EXPECT_EQ(summary.push_fp32_bytes, 80u * 4000);
  EXPECT_EQ(summary.parameter_bytes, 160000u);
}

// Adds to a lead's REPLY that its two live workers have trained on 500 and 700 examples in 10 s.
void AddProgress(StatusReply& reply) {
  for (uint32_t worker : {0, 1}) {
    WorkerProgress& progress = (*reply.mutable_progress())[worker];
    progress.set_planned_steps(2000);
    progress.set_examples(worker == 0 ? 500 : 700);
    progress.set_seconds(10);
    progress.set_loss(worker == 0 ? 1.5 : 0.5);
    progress.set_push("fp8_e5m2");
    progress.set_pull("bf16");
    if (worker == 1) progress.set_page("b:9100");
  }
  ModelTest& test = *(*reply.mutable_progress())[1].mutable_test();
  test.set_step(40);
  test.set_accuracy(0.875);
}

TEST(JobSummaryTest, TheTrainingIsWhatTheWorkersTellTheLead) {
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0}), ServerHistory(ServerId{1})};
  for (const uint64_t step : {20, 40}) {
    StatusReply lead = ReplyAt(step);
    AddProgress(lead);
    const absl::Time now = kStart + absl::Seconds(static_cast<double>(step) / 4);
    StatusReply other = ReplyAt(step);
    other.set_page("b\"<:9101");
    servers[0].Add(lead, now);
    servers[1].Add(other, now);
  }
  const absl::Time now = kStart + absl::Seconds(10);
  const JobSummary summary = SummaryOf(servers, now);
  EXPECT_EQ(summary.training.planned_steps, 2000u);
  EXPECT_EQ(summary.training.steps_per_second, 4);
  EXPECT_EQ(summary.training.left, absl::Seconds(490));
  EXPECT_EQ(summary.training.examples_per_second, 120);
  EXPECT_EQ(summary.training.loss, 1);
  EXPECT_EQ(StepText(summary), "40 of 2,000");
  EXPECT_EQ(SpeedText(summary.training), "4 steps/s, 120 examples/s");
  EXPECT_EQ(TimeLeftText(summary.training), "8m10s");
  EXPECT_EQ(TestText(summary.training.test), "accuracy 0.875 at step 40");

  const std::string page = ServersHtml(servers, now);
  EXPECT_THAT(page, HasSubstr("<dt>time left</dt><dd>8m10s</dd>"));
  EXPECT_THAT(page, HasSubstr("mean training loss of the workers: 1 now"));
  EXPECT_THAT(page, HasSubstr("<td>50</td><td>1.5</td>"));
  EXPECT_THAT(page, HasSubstr("<dt>codecs</dt><dd>push fp8_e5m2; pull bf16</dd>"));
  EXPECT_THAT(page, HasSubstr("<p>Pages: <a href=\"http://b&quot;&lt;:9101/\">server 1</a> "
                              "<a href=\"http://b:9100/\">worker 1</a></p>"));
  StatusReply last = ReplyAt(2000);
  AddProgress(last);
  for (WorkerStatus& worker : *last.mutable_workers()) {
    worker.set_live(false);
    worker.set_left(true);
    worker.set_finished(true);
  }
  std::vector<ServerHistory> finished = servers;
  for (ServerHistory& server : finished) server.Add(last, now);
  const std::string end = ServersHtml(finished, now + absl::Seconds(2));
  EXPECT_THAT(end, HasSubstr("<dt>newest test</dt>"));
  for (const char* fact : {"<dt>time left</dt>", "<dt>speed</dt>", "<dt>open for</dt>"}) {
    EXPECT_THAT(end, Not(HasSubstr(fact)));
  }
  EXPECT_THAT(ServersHtml(servers, now, /*with_curves=*/false), Not(HasSubstr("<svg")));
  const nlohmann::ordered_json json = ServersJson(servers, now)["summary"];
  EXPECT_EQ(json["planned_steps"], 2000);
  EXPECT_EQ(json["seconds_left"], 490);
  EXPECT_EQ(json["loss"], 1);
  EXPECT_EQ(json["push_codecs"], nlohmann::ordered_json({"fp8_e5m2"}));
  EXPECT_EQ(json["pull_codec"], "bf16");
}

TEST(JobSummaryTest, APlainClientStatesNoTraining) {
  const auto servers = TwoServers();
  const absl::Time now = kStart + absl::Seconds(5);
  const JobSummary summary = SummaryOf(servers, now);
  EXPECT_EQ(StepText(summary), "41");
  EXPECT_EQ(SpeedText(summary.training), "-");
  EXPECT_EQ(TimeLeftText(summary.training), "-");
  EXPECT_EQ(TestText(summary.training.test), "-");
  EXPECT_EQ(CodecsText(summary.training), "-");
  EXPECT_THAT(ServersHtml(servers, now), Not(HasSubstr("Pages:")));
  EXPECT_TRUE(ServersJson(servers, now)["summary"]["loss"].is_null());
  EXPECT_THAT(ServersHtml(servers, now), Not(HasSubstr("examples/s")));
}

TEST(JobSummaryTest, TheNoiseScaleIsTheQuotientOfTheSumsOverAllShards) {
  const auto reply = [](double variance, double squared_gradient) {
    StatusReply status;
    for (int i = 0; i < 2; ++i) {
      ShardStatus& shard = *status.add_shards();
      shard.set_gradient_variance(variance);
      shard.set_squared_gradient(squared_gradient);
      shard.set_noise_rounds(1);
    }
    return status;
  };
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0}), ServerHistory(ServerId{1})};
  servers[0].Add(reply(3000, 1.5), kStart);
  EXPECT_EQ(SummaryOf(servers, kStart).noise.scale(), 2000);
  servers[1].Add(reply(2000, -0.5), kStart);
  EXPECT_EQ(SummaryOf(servers, kStart).noise.scale(), 5000);
  EXPECT_EQ(ServersJson(servers, kStart)["summary"]["noise_scale"], 5000);
  EXPECT_THAT(ServersHtml(servers, kStart), HasSubstr("5,000 examples"));
  servers[0].Add(reply(3000, 0.25), kStart);
  EXPECT_EQ(SummaryOf(servers, kStart).noise.scale(), std::nullopt) << "too uncertain";
  EXPECT_TRUE(ServersJson(servers, kStart)["summary"]["noise_scale"].is_null());
}

TEST(JobSummaryTest, TheLeadStatesTheNormOfTheGradient) {
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0}), ServerHistory(ServerId{1})};
  servers[1].Add(StatusReply(), kStart);
  EXPECT_EQ(ClippingText(SummaryOf(servers, kStart).clipping), "-");
  EXPECT_THAT(ServersHtml(servers, kStart), Not(HasSubstr("updates clipped")));
  StatusReply reply;
  reply.set_gradient_norm(0.51349);
  reply.set_clipped_updates(1200);
  servers[0].Add(reply, kStart);
  EXPECT_THAT(ServersHtml(servers, kStart), HasSubstr("norm 0.513, 1,200 updates clipped"));
  EXPECT_EQ(ServersJson(servers, kStart)["summary"]["gradient_norm"], 0.51349);
  EXPECT_EQ(ServersJson(servers, kStart)["summary"]["clipped_updates"], 1200);
  MetricList metrics;
  AddServerMetrics(servers[0], kStart, metrics);
  EXPECT_THAT(metrics.Text(), HasSubstr("thinwire_server_gradient_norm 0.51349\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("thinwire_server_clipped_updates_total 1200\n"));
}

TEST(JobSummaryTest, TheLeadStatesTheGrowingBatch) {
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0}), ServerHistory(ServerId{1})};
  servers[1].Add(StatusReply(), kStart);
  EXPECT_EQ(BatchText(SummaryOf(servers, kStart).batch), "-");
  StatusReply reply;
  reply.set_batch(1024);
  reply.set_accumulate(4);
  reply.set_wished_workers(16);
  servers[0].Add(reply, kStart);
  const std::string text = "1,024 examples, 4 batches per worker, 16 workers wished";
  EXPECT_EQ(BatchText(SummaryOf(servers, kStart).batch), text);
  EXPECT_THAT(ServersHtml(servers, kStart), HasSubstr(text));
  EXPECT_EQ(ServersJson(servers, kStart)["summary"]["batch"], 1024);
  EXPECT_EQ(ServersJson(servers, kStart)["summary"]["wished_workers"], 16);
  MetricList metrics;
  AddServerMetrics(servers[0], kStart, metrics);
  EXPECT_THAT(metrics.Text(), HasSubstr("thinwire_server_batch_examples 1024\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("thinwire_server_wished_workers 16\n"));
}

TEST(JobSummaryTest, TheLeadStatesTheLastDecisionOfAdaptivePrecision) {
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0}), ServerHistory(ServerId{1})};
  servers[1].Add(StatusReply(), kStart);
  EXPECT_THAT(ServersHtml(servers, kStart), Not(HasSubstr("adaptive push")));
  StatusReply reply;
  reply.add_precision_decisions()->set_chosen("fp32");
  PrecisionDecision& last = *reply.add_precision_decisions();
  last.set_chosen("fp8_e5m2");
  last.set_next_step(1100);
  last.set_layers("matrices");
  servers[0].Add(reply, kStart);
  EXPECT_EQ(SummaryOf(servers, kStart).push_choice, "fp8_e5m2 for matrices up to step 1,100");
  EXPECT_THAT(ServersHtml(servers, kStart), HasSubstr("fp8_e5m2 for matrices up to step 1,100"));
}

TEST(JobSummaryTest, AJobWithoutAnswersIsEmpty) {
  const std::vector<ServerHistory> servers = {ServerHistory(ServerId{0})};
  const JobSummary summary = SummaryOf(servers, kStart);
  EXPECT_EQ(summary.answered_count, 0u);
  EXPECT_EQ(summary.step, 0u);
  EXPECT_THAT(ServersHtml(servers, kStart), HasSubstr("<p class=\"state\">starting</p>"));
  EXPECT_EQ(ServersJson(servers, kStart)["servers"].size(), 1u);
}

TEST(ServersHtmlTest, ThePageHasTheMembersAndTheCauseOfAWait) {
  std::vector<ServerHistory> servers = TwoServers();
  StatusReply reply = ReplyAt(41);
  reply.mutable_shards(0)->set_progress_seconds(0.5);
  reply.mutable_shards(0)->set_progress_seconds_ago(3);
  servers[1].Add(reply, kStart + absl::Seconds(5));
  const std::string page = ServersHtml(servers, kStart + absl::Seconds(5));
  EXPECT_THAT(page, HasSubstr("<p class=\"problem\">worker 1 did not finish step 41 within 3.0 s"));
  EXPECT_THAT(page, HasSubstr("<p class=\"state alarm\">waiting for worker 1</p>"));
  EXPECT_THAT(
      page,
      HasSubstr("<th scope=\"row\">1</th><td>live</td><td>41</td><td>2.5 s ago</td><td>8</td>"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">3</th><td>left</td>"));
  EXPECT_THAT(page, HasSubstr(">mode<"));
  EXPECT_THAT(page, HasSubstr(">ssp<"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">accepted</th><td>60</td>"));
  EXPECT_THAT(page, HasSubstr("<p>no push: "));
  EXPECT_THAT(page, Not(HasSubstr("</th><td>0</td></tr>")));
  EXPECT_THAT(page, HasSubstr("<details><summary>Shards: "));
  EXPECT_THAT(page, HasSubstr("Staleness in updates, mean 1.00"));
  EXPECT_THAT(page, HasSubstr("<td>32.0 kB</td><td>about 320.0 kB</td><td>10.0x</td>"));
  EXPECT_THAT(page, Not(HasSubstr("Durability")));
}

TEST(ServersHtmlTest, AnAnnouncedModeIsShown) {
  std::vector<ServerHistory> servers = TwoServers();
  StatusReply reply = ReplyAt(43);
  reply.set_next_mode("async");
  reply.set_next_mode_step(60);
  servers[1].Add(reply, kStart + absl::Seconds(5));
  EXPECT_THAT(ServersHtml(servers, kStart), HasSubstr("ssp, async from step 60 on"));
  EXPECT_EQ(ServersJson(servers, kStart)["summary"]["next_mode"], "async from step 60 on");
  MetricList metrics;
  AddServerMetrics(servers[1], kStart, metrics);
  EXPECT_THAT(metrics.Text(), HasSubstr("thinwire_server_mode_info{mode=\"ssp\"} 1\n"));
}

TEST(ServersHtmlTest, TheNumberOfTheModeIsShown) {
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0})};
  StatusReply reply = ReplyAt(43);
  reply.set_slack(4);
  servers[0].Add(reply, kStart);
  EXPECT_EQ(ModeText(SummaryOf(servers, kStart)), "ssp 4");
  EXPECT_EQ(ServersJson(servers, kStart)["summary"]["slack"], 4);
  EXPECT_TRUE(ServersJson(servers, kStart)["summary"]["backup"].is_null());
  reply.set_mode("backup");
  reply.clear_slack();
  reply.set_backup(2);
  servers[0].Add(reply, kStart);
  EXPECT_EQ(ModeText(SummaryOf(servers, kStart)), "backup 2");
  MetricList metrics;
  AddServerMetrics(servers[0], kStart, metrics);
  EXPECT_THAT(metrics.Text(), HasSubstr("thinwire_server_backup_workers 2\n"));
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("slack_steps")));
  reply.set_mode("sync");
  reply.set_backup(0);
  servers[0].Add(reply, kStart);
  EXPECT_EQ(ModeText(SummaryOf(servers, kStart)), "sync");
}

TEST(ServersHtmlTest, AServerThatListensWithoutCredentialsIsNamed) {
  std::vector<ServerHistory> servers = TwoServers();
  EXPECT_THAT(ServersHtml(servers, kStart), Not(HasSubstr("INSECURE")));
  StatusReply reply = ReplyAt(43);
  reply.set_insecure(true);
  servers[1].Add(reply, kStart + absl::Seconds(5));
  EXPECT_THAT(SummaryOf(servers, kStart).insecure, ElementsAre(1));
  EXPECT_THAT(ServersHtml(servers, kStart),
              HasSubstr("INSECURE: server 1 listens for other machines without credentials"));
  EXPECT_EQ(InsecureText({0, 1}),
            "INSECURE: servers 0, 1 listen for other machines without credentials");
  EXPECT_EQ(ServersJson(servers, kStart)["summary"]["insecure_servers"],
            nlohmann::ordered_json::array({1}));
}

TEST(ServersHtmlTest, OnlyADurableServerHasALog) {
  StatusReply reply = ReplyAt(41);
  reply.set_log_records(12);
  reply.set_log_bytes(3456);
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0})};
  servers[0].Add(reply, kStart);
  const std::string page = ServersHtml(servers, kStart);
  EXPECT_THAT(page, HasSubstr("Durability"));
  EXPECT_THAT(page, HasSubstr("<td>none</td><td>12 records, 3.5 kB</td>"));
}

TEST(ServersHtmlTest, AFailedCheckpointIsShown) {
  StatusReply reply = ReplyAt(41);
  reply.set_failed_checkpoints(2);
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0})};
  servers[0].Add(reply, kStart);
  EXPECT_THAT(ServersHtml(servers, kStart), HasSubstr("<td>0, 2 failed</td><td>none</td>"));
}

TEST(ServersHtmlTest, ALongListOfShardsIsCut) {
  StatusReply reply;
  for (uint32_t i = 0; i < 300; ++i) AddShard(i, 1, reply);
  std::vector<ServerHistory> servers = {ServerHistory(ServerId{0})};
  servers[0].Add(reply, kStart);
  EXPECT_THAT(ServersHtml(servers, kStart), HasSubstr("44 more shards are in /status.json"));
}

TEST(ServersJsonTest, EachServerHasItsStatus) {
  const auto json = ServersJson(TwoServers(), kStart + absl::Seconds(5));
  ASSERT_EQ(json["servers"].size(), 2u);
  EXPECT_EQ(json["servers"][1]["answered_seconds_ago"], 1);
  EXPECT_EQ(json["servers"][1]["status"]["workers"][1]["next"], "41");
  EXPECT_EQ(json["servers"][1]["status"]["log_records"], "0");
  EXPECT_EQ(json["summary"]["unfinished_workers"], nlohmann::ordered_json::array({1}));
}

TEST(ServerMetricsTest, EveryCounterOfTheStatusHasAMetric) {
  StatusReply reply = ReplyAt(41);
  // Gives each counter a value of its own.
  const google::protobuf::Descriptor& type = *StatusReply::descriptor();
  std::set<std::string> names;
  ForEachCounter(reply, [&](const std::string& name, uint64_t) { names.insert(name); });
  for (const std::string& name : names) {
    const auto* field = type.FindFieldByName(name);
    reply.GetReflection()->SetUInt64(&reply, field,
                                     777000 + static_cast<uint64_t>(field->number()));
  }
  const std::set<std::string> times = {"checkpoint_seconds", "decode_seconds", "encode_seconds"};
  for (const std::string& name : times) {
    const auto* field = type.FindFieldByName(name);
    reply.GetReflection()->SetDouble(&reply, field, 777000 + field->number());
  }
  names.insert(times.begin(), times.end());
  ServerHistory server(ServerId{0});
  server.Add(reply, kStart);
  MetricList metrics;
  AddServerMetrics(server, kStart, metrics);
  const std::string text = metrics.Text();
  // Identifiers are no metrics.
  for (const char* name : {"epoch", "run"}) ASSERT_EQ(names.erase(name), 1u);
  int count = 0;
  for (const std::string& name : names) {
    EXPECT_THAT(text,
                HasSubstr(absl::StrCat(" ", 777000 + type.FindFieldByName(name)->number(), "\n")))
        << name;
    ++count;
  }
  EXPECT_GE(count, 24);
}

TEST(ServersJsonTest, TheStateAndTheUnreachableServersAreStated) {
  std::vector<ServerHistory> servers = TwoServers();
  EXPECT_EQ(ServersJson(servers, kStart + absl::Seconds(5))["state"], "training");
  servers[1].AddFailure(kStart + absl::Seconds(5));
  const auto json = ServersJson(servers, kStart + absl::Seconds(6));
  EXPECT_EQ(json["state"], "waiting");
  EXPECT_EQ(json["state_text"], "waiting for server 1");
  EXPECT_EQ(json["waiting_seconds"], 2);
  EXPECT_EQ(json["servers_unreachable"], nlohmann::ordered_json::array({1}));
  EXPECT_EQ(json["summary"]["pushes"]["accepted"], 30) << "of server 0 alone";
}

TEST(JobMetricsTest, TheConditionOfTheJobIsExported) {
  std::vector<ServerHistory> servers = TwoServers();
  const auto text = [&servers] {
    MetricList metrics;
    AddJobMetrics(servers, kStart + absl::Seconds(6), /*stopping=*/false, metrics);
    return metrics.Text();
  };
  EXPECT_THAT(text(), HasSubstr("thinwire_job_state{state=\"training\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("thinwire_job_state{state=\"finished\"} 0\n"));
  EXPECT_THAT(text(), HasSubstr("thinwire_job_server_reachable{server=\"1\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("thinwire_job_lost_workers 0\n"));
  EXPECT_THAT(text(), Not(HasSubstr("waiting_seconds")));
  EXPECT_THAT(text(), Not(HasSubstr("diverged_info")));
  servers[1].AddFailure(kStart + absl::Seconds(5));
  EXPECT_THAT(text(), HasSubstr("thinwire_job_state{state=\"waiting\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("thinwire_job_waiting_seconds{cause=\"server\"} 2\n"));
  EXPECT_THAT(text(), HasSubstr("thinwire_job_server_reachable{server=\"1\"} 0\n"));
  StatusReply reply = ReplyAt(42);
  reply.mutable_workers(2)->set_diverged("the loss of step 3 is not finite");
  servers[0].Add(reply, kStart + absl::Seconds(6));
  EXPECT_THAT(text(), HasSubstr("thinwire_job_state{state=\"diverged\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("thinwire_job_diverged_info{symptom=\"worker 3: the loss of step 3 "
                                "is not finite\"} 1\n"));
}

TEST(JobMetricsTest, AProcessThatEndsSaysSo) {
  MetricList metrics;
  AddJobMetrics({}, kStart, /*stopping=*/true, metrics);
  EXPECT_THAT(metrics.Text(), HasSubstr("thinwire_job_state{state=\"stopping\"} 1\n"));
}

TEST(ServerMetricsTest, AServerWithoutAnAnswerHasNoMetrics) {
  MetricList metrics;
  AddServerMetrics(ServerHistory(ServerId{0}), kStart, metrics);
  EXPECT_EQ(metrics.Text(), "");
}

}  // namespace
}  // namespace thinwire
