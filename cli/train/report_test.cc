#include "cli/train/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

namespace thinwire {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

TrainResult Result() {
  JobConfig config;
  config.set_servers(2);
  config.mutable_consistency()->set_workers(2);
  config.mutable_consistency()->set_mode(Consistency::Mode::ssp);
  config.mutable_compression()->set_push(Compression::Codec::fp8_e5m2);
  TrainResult result{.config = config,
                     .record = RunRecord(2),
                     .totals = ServerTotals(),
                     .parameters_crc32c = 0xDEADBEEF,
                     .resumed_step = std::nullopt,
                     .problems = {},
                     .interrupted = false};
  result.totals->counters.set_accepted_pushes(30);
  result.totals->staleness = {{0, 20}, {3, 10}};
  WorkerEvent event;
  WorkerEvent::Done& done = *event.mutable_done();
  done.set_steps(100);
  done.set_seconds(12.5);
  done.set_median_step_seconds(0.1);
  done.set_final_train_loss(0.25);
  done.set_final_test_accuracy(0.88);
  done.set_final_test_loss(0.3125);
  done.set_evaluator(true);
  done.mutable_counters()->set_push_bytes_raw(4'000'000);
  done.mutable_counters()->set_push_bytes_encoded(1'000'000);
  done.mutable_counters()->set_accepted_pushes(29);
  done.mutable_counters()->set_reconnects(2);
  WorkerEvent epoch;
  epoch.mutable_epoch()->set_train_loss(0.5);
  epoch.mutable_epoch()->set_test_accuracy(0.8);
  epoch.mutable_epoch()->set_test_loss(0.75);
  result.record.Apply(epoch);
  epoch.mutable_epoch()->set_epoch(1);
  epoch.mutable_epoch()->set_test_accuracy(0.88);
  result.record.Apply(epoch);
  result.record.Apply(event);
  result.record.WorkerEnded(WorkerId{0}, ExitStatus{}, false);
  result.record.WorkerEnded(WorkerId{1}, ExitStatus{.code = 0, .signal = 9}, false);
  return result;
}

TEST(ReportTest, TheJsonHasTheFiguresOfTheRun) {
  const ordered_json report = ReportJson(Result());
  EXPECT_EQ(report["mode"], "ssp");
  EXPECT_EQ(report["servers"], 2);
  EXPECT_EQ(report["push"], "fp8_e5m2");
  EXPECT_EQ(report["steps"], 100);
  EXPECT_EQ(report["seconds"], 12.5);
  EXPECT_EQ(report["median_step_seconds"], 0.1);
  EXPECT_EQ(report["final_train_loss"], 0.25);
  EXPECT_EQ(report["final_test_accuracy"], 0.88);
  EXPECT_EQ(report["final_test_loss"], 0.3125);
  EXPECT_EQ(report["push_bytes_encoded"], 1'000'000);
  EXPECT_EQ(report["accepted_pushes"], 30) << "as the servers counted";
  EXPECT_EQ(report["reconnects"], 2) << "as the workers counted";
  EXPECT_EQ(report["staleness"],
            (ordered_json{{"mean", 1.0}, {"max", 3}, {"histogram", {{"0", 20}, {"3", 10}}}}));
  EXPECT_EQ(report["final_parameters_crc32c"], 0xDEADBEEF);
  EXPECT_EQ(report["epoch_rows"][0]["test_accuracy"], 0.8);
  EXPECT_EQ(report["config"]["consistency"]["mode"], "ssp");
  EXPECT_EQ(report["config"]["task"]["batch_size"], 32);
}

TEST(ReportTest, LostWorkersAreNamedWithTheirReasons) {
  const ordered_json report = ReportJson(Result());
  ASSERT_EQ(report["workers_lost"].size(), 1);
  EXPECT_EQ(report["workers_lost"][0]["worker"], 1);
  EXPECT_EQ(report["workers_lost"][0]["reason"], "killed by signal 9 (Killed)");
  EXPECT_EQ(report["worker_rows"][1]["state"], "lost");
}

TEST(ReportTest, RestartsAndTheResumedStepAreShown) {
  TrainResult result = Result();
  EXPECT_TRUE(ReportJson(result)["restarts"].empty());
  EXPECT_TRUE(ReportJson(result)["resumed_step"].is_null());
  EXPECT_THAT(ReportTable(result), Not(HasSubstr("restarts")));
  EXPECT_THAT(ReportTable(result), Not(HasSubstr("resumed")));
  const ExitStatus killed{.code = 0, .signal = 9};
  result.record.ServerRestarted(ServerId{1}, killed);
  result.record.ServerRestarted(ServerId{1}, killed);
  result.record.WorkerRestarted(WorkerId{0}, ExitStatus{.code = 70, .signal = 0});
  WorkerEvent event;
  event.mutable_step()->mutable_counters()->set_rejoins(4);
  result.record.Apply(event);
  result.resumed_step = 40;
  const ordered_json report = ReportJson(result);
  ASSERT_EQ(report["restarts"].size(), 3);
  EXPECT_EQ(report["restarts"][0]["process"], "server 1");
  EXPECT_EQ(report["restarts"][0]["reason"], "killed by signal 9 (Killed)");
  EXPECT_EQ(report["restarts"][2]["process"], "worker 0");
  EXPECT_EQ(report["restarts"][2]["reason"], "exit code 70");
  EXPECT_EQ(report["rejoins"], 4);
  EXPECT_EQ(report["resumed_step"], 40);
  EXPECT_THAT(ReportTable(result),
              HasSubstr("restarts                 server 1 (2), worker 0; 4 rejoins\n"));
  EXPECT_THAT(ReportTable(result), HasSubstr("resumed from step        40\n"));
}

TEST(ReportTest, RepeatedStepsAndDroppedResidualsAreShown) {
  TrainResult result = Result();
  EXPECT_THAT(ReportTable(result), Not(HasSubstr("rollbacks")));
  WorkerEvent event;
  WorkerCounters& counters = *event.mutable_step()->mutable_counters();
  counters.set_rollbacks(1);
  counters.set_repeated_steps(12);
  result.record.Apply(event);
  EXPECT_THAT(ReportTable(result),
              HasSubstr("rollbacks                12 steps were repeated after 1 rollback\n"));
  event.set_worker(1);
  counters.set_rollbacks(2);
  counters.set_repeated_steps(15);
  counters.set_dropped_residuals(3);
  result.record.Apply(event);
  EXPECT_THAT(ReportTable(result),
              HasSubstr("rollbacks                15 steps were repeated after 2 rollbacks; 3 "
                        "residuals were dropped\n"));
  const ordered_json report = ReportJson(result);
  EXPECT_EQ(report["rollbacks"], 3) << "the sum of all workers";
  EXPECT_EQ(report["repeated_steps"], 27);
  EXPECT_EQ(report["dropped_residuals"], 3);
}

TEST(ReportTest, TheDecisionsOfAdaptivePrecisionAreShown) {
  TrainResult result = Result();
  EXPECT_TRUE(ReportJson(result)["precision_decisions"].is_null());
  result.config.mutable_compression()->set_push(Compression::Codec::adaptive);
  WorkerEvent event;
  event.mutable_step()->mutable_counters()->set_rollbacks(1);
  event.mutable_step()->mutable_counters()->set_repeated_steps(16);
  result.record.Apply(event);
  PrecisionDecision decision;
  decision.set_step(100);
  decision.set_next_step(1200);
  decision.set_accuracy(0.5);
  decision.set_chosen("fp32");
  PrecisionDecision::Candidate& candidate = *decision.add_candidate();
  candidate.set_name("fp32");
  candidate.set_predicted_accuracy(0.75);
  candidate.set_deviation(0.01);
  candidate.set_seconds_per_step(0.25);
  candidate.set_encoding_error(0.5);
  decision.set_layers("convolutions");
  PrecisionDecision::Candidate& removed = *decision.add_candidate();
  removed.set_name("table_1");
  removed.set_encoding_error(1.5);
  result.totals.emplace().decisions = {decision};
  const std::string table = ReportTable(result);
  EXPECT_THAT(table, HasSubstr("16 steps were repeated after 1 rollback, with the returns of "
                               "adaptive precision\n"));
  EXPECT_THAT(table, HasSubstr("decision at 100          fp32 for convolutions up to step 1200, "
                               "predicted: fp32 75.0 +- 1.0 % at 0.25 s a step, table_1 removed "
                               "(encoding error 1.5)\n"));
  const ordered_json shown = ReportJson(result)["precision_decisions"];
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0]["chosen"], "fp32");
  EXPECT_EQ(shown[0]["layers"], "convolutions");
  EXPECT_EQ(shown[0]["candidates"][0]["predicted_accuracy"], 0.75);
  EXPECT_EQ(shown[0]["candidates"][0]["encoding_error"], 0.5);
  EXPECT_TRUE(shown[0]["candidates"][1]["predicted_accuracy"].is_null());
}

TEST(ReportTest, DivergenceAndSaturatedShardsAreNamed) {
  EXPECT_EQ(ReportJson(Result())["diverged"], "");
  TrainResult result = Result();
  result.totals->saturated_shards = {4, 7};
  WorkerEvent done;
  done.mutable_done()->set_diverged("the loss of step 7 is not finite");
  result.record.Apply(done);
  result.record.WorkerEnded(WorkerId{0}, ExitStatus{.code = 65, .signal = 0}, false);
  const ordered_json report = ReportJson(result);
  EXPECT_EQ(report["diverged"], "worker 0: the loss of step 7 is not finite");
  EXPECT_EQ(report["saturated_shards"], (ordered_json{4, 7}));
  EXPECT_EQ(report["worker_rows"][0]["state"], "diverged");
  EXPECT_THAT(ReportTable(result), HasSubstr("0 of 2 done, 1 lost, 1 diverged"));
}

TEST(ReportTest, TheRuleInForceAtTheEndIsShown) {
  TrainResult result = Result();
  result.totals->rule.mode = "backup";
  result.totals->rule.backup = 1;
  EXPECT_EQ(ReportJson(result)["final_rule"],
            (ordered_json{{"mode", "backup"}, {"backup", 1}, {"slack", nullptr}}));
  result.totals.reset();
  EXPECT_TRUE(ReportJson(result)["final_rule"].is_null());
}

TEST(ReportTest, TheNoiseIsMeasuredAndFollowsFromTheSettings) {
  TrainResult result = Result();
  EXPECT_TRUE(ReportJson(result)["noise_scale"].is_null());
  EXPECT_THAT(ReportTable(result), Not(HasSubstr("noise scale")));
  result.totals->noise = {.variance = 6000, .squared_gradient = 2};
  EXPECT_EQ(ReportJson(result)["noise_scale"], 3000);
  EXPECT_THAT(ReportTable(result), HasSubstr("noise scale              3,000 examples\n"));

  WorkerEvent joined;
  joined.mutable_joined()->set_planned_steps(200);
  result.record.Apply(joined);
  result.config.mutable_task()->set_epochs(2);
  Optimization& optimization = *result.config.mutable_optimization();
  optimization.set_learning_rate(0.5);
  // 100 steps of each of two workers in an epoch; a push is an update.
  EXPECT_DOUBLE_EQ(ReportJson(result)["sgd_noise"].get<double>(), 0.5 * 199);
  result.config.mutable_consistency()->set_mode(Consistency::Mode::sync);
  optimization.set_optimizer(Optimization::Optimizer::momentum);
  optimization.set_momentum(0.75);
  EXPECT_DOUBLE_EQ(ReportJson(result)["sgd_noise"].get<double>(), 2 * 99);
  optimization.set_optimizer(Optimization::Optimizer::adam);
  EXPECT_TRUE(ReportJson(result)["sgd_noise"].is_null());
}

TEST(ReportTest, AGrownBatchIsNamedAndDeterminesTheNoise) {
  TrainResult result = Result();
  EXPECT_TRUE(ReportJson(result)["batch"].is_null());
  EXPECT_THAT(ReportTable(result), Not(HasSubstr("last batch")));
  WorkerEvent joined;
  joined.mutable_joined()->set_planned_steps(200);
  result.record.Apply(joined);
  result.config.mutable_optimization()->set_learning_rate(0.5);
  result.totals->batch = {.examples = 400, .accumulate = 4, .epoch_examples = 60000};
  result.totals->updates = 321;
  const ordered_json report = ReportJson(result);
  EXPECT_EQ(report["batch"], 400);
  EXPECT_EQ(report["accumulate"], 4);
  EXPECT_EQ(report["updates"], 321);
  EXPECT_DOUBLE_EQ(report["sgd_noise"].get<double>(), 0.5 * 149);
  EXPECT_THAT(ReportTable(result), HasSubstr("updates                  321\n"));
  EXPECT_THAT(ReportTable(result),
              HasSubstr("last batch               400 examples, 4 batches per worker\n"));
}

TEST(ReportTest, ClippedUpdatesAreCounted) {
  TrainResult result = Result();
  EXPECT_EQ(ReportJson(result)["clipped_updates"], 0);
  EXPECT_THAT(ReportTable(result), Not(HasSubstr("clipped updates")));
  result.totals->counters.set_clipped_updates(12);
  result.totals->updates = 321;
  EXPECT_EQ(ReportJson(result)["clipped_updates"], 12);
  EXPECT_THAT(ReportTable(result), HasSubstr("clipped updates          12 of 321\n"));
}

TEST(ReportTest, UnknownValuesAreNull) {
  TrainResult result = Result();
  result.totals.reset();
  result.parameters_crc32c.reset();
  result.record = RunRecord(2);
  const ordered_json report = ReportJson(result);
  EXPECT_TRUE(report["staleness"].is_null());
  EXPECT_EQ(report["accepted_pushes"], 0);
  EXPECT_TRUE(report["final_parameters_crc32c"].is_null());
  EXPECT_TRUE(report["final_test_accuracy"].is_null());
  EXPECT_TRUE(report["final_test_loss"].is_null());
}

TEST(ReportTest, TheTableShowsTheFiguresOfTheRun) {
  TrainResult result = Result();
  result.problems = {"worker 1: killed by signal 9 (Killed)"};
  const std::string table = ReportTable(result);
  EXPECT_THAT(table, HasSubstr("ssp, 2 workers, 2 servers\n"));
  EXPECT_THAT(table, HasSubstr("1 of 2 done, 1 lost"));
  EXPECT_THAT(table, HasSubstr("train loss (epoch mean)  0.2500\n"));
  EXPECT_THAT(table, HasSubstr("test loss                0.3125\n"));
  EXPECT_THAT(table, HasSubstr("test accuracy            0.8800\n"));
  EXPECT_THAT(table, HasSubstr("epoch 0                  train loss 0.5000, test loss 0.7500, "
                               "test accuracy 0.8000\n"));
  EXPECT_THAT(table, HasSubstr("1.0 MB as fp8_e5m2 (4.0x smaller than fp32)"));
  EXPECT_THAT(table, HasSubstr("deadbeef"));
  EXPECT_THAT(table, HasSubstr("problem                  worker 1: killed by signal 9"));
  EXPECT_THAT(table, Not(HasSubstr("pulled")));
}

TEST(ReportTest, AJobWithoutAccuracySaysSo) {
  TrainResult result = Result();
  result.config.mutable_task()->set_loss(Task::Loss::script);
  result.record = RunRecord(1);
  WorkerEvent done;
  done.mutable_done()->set_evaluator(true);
  done.mutable_done()->set_final_test_loss(0.25);
  result.record.Apply(done);
  const std::string table = ReportTable(result);
  EXPECT_THAT(table, HasSubstr("test loss                0.2500\n"));
  EXPECT_THAT(table, HasSubstr("test accuracy            no accuracy (loss: script)\n"));
  EXPECT_TRUE(ReportJson(result)["final_test_accuracy"].is_null());
  EXPECT_EQ(ReportJson(result)["final_test_loss"], 0.25);
}

TEST(ReportTest, OneServerIsInTheSingular) {
  TrainResult result = Result();
  result.config.set_servers(1);
  EXPECT_THAT(ReportTable(result), HasSubstr("ssp, 2 workers, 1 server\n"));
}

TEST(ReportTest, ChosenPushCodecsAreShownForEveryWorker) {
  TrainResult result = Result();
  WorkerEvent done;
  WorkerEvent::PushCodec& codec = *done.mutable_done()->add_push_codecs();
  codec.set_group("matrices");
  codec.set_codec("bf16");
  codec.set_reason("at 10.0 MB/s: ...");
  result.record.Apply(done);
  const ordered_json report = ReportJson(result);
  EXPECT_EQ(report["worker_rows"][0]["push_codecs"],
            (ordered_json::array(
                {{{"group", "matrices"}, {"codec", "bf16"}, {"reason", "at 10.0 MB/s: ..."}}})));
  EXPECT_TRUE(report["worker_rows"][1]["push_codecs"].empty());
  EXPECT_THAT(ReportTable(result),
              HasSubstr("worker 0                 matrices pushed as bf16: at 10.0 MB/s"));
}

TEST(ReportTest, TheModelFileIsShownWithItsEpoch) {
  TrainResult result = Result();
  EXPECT_TRUE(ReportJson(result)["output"].is_null());
  EXPECT_THAT(ReportTable(result), Not(HasSubstr("model ")));
  WorkerEvent done;
  done.mutable_done()->set_evaluator(true);
  done.mutable_done()->set_final_test_accuracy(0.9375);
  done.mutable_done()->set_output("m.safetensors");
  result.record.Apply(done);
  EXPECT_EQ(ReportJson(result)["output"], "m.safetensors");
  EXPECT_TRUE(ReportJson(result)["output_epoch"].is_null());
  EXPECT_EQ(ReportJson(result)["epoch_rows"][1]["test_accuracy"], 0.9375);
  EXPECT_THAT(ReportTable(result), HasSubstr("model                    m.safetensors\n"));
  done.mutable_done()->set_kept_epoch(0);
  result.record.Apply(done);
  EXPECT_EQ(ReportJson(result)["output_epoch"], 0);
  EXPECT_EQ(ReportJson(result)["epoch_rows"][0]["test_accuracy"], 0.9375);
  EXPECT_EQ(ReportJson(result)["final_test_accuracy"], 0.9375);
  EXPECT_THAT(ReportTable(result),
              HasSubstr("model                    m.safetensors, of epoch 0\n"));
}

TEST(ReportTest, LossScalesAreShownForTheWorkersThatHaveOne) {
  TrainResult result = Result();
  EXPECT_THAT(ReportTable(result), Not(HasSubstr("loss scale")));
  WorkerEvent done;
  done.mutable_done()->set_loss_scale(32768);
  done.mutable_done()->mutable_counters()->set_overflowed_steps(3);
  result.record.Apply(done);
  const ordered_json rows = ReportJson(result)["worker_rows"];
  EXPECT_EQ(rows[0]["loss_scale"], 32768);
  EXPECT_EQ(rows[0]["overflowed_steps"], 3);
  EXPECT_TRUE(rows[1]["loss_scale"].is_null());
  EXPECT_THAT(ReportTable(result),
              HasSubstr("worker 0                 loss scale 32768, 3 overflowed steps"));
}

TEST(ReportTest, TheResidualThatADrainedWorkerLostIsShown) {
  TrainResult result = Result();
  WorkerEvent event;
  event.set_worker(1);
  event.mutable_done()->set_lost_residual_l1(12.5);
  result.record.Apply(event);
  EXPECT_EQ(ReportJson(result)["worker_rows"][1]["lost_residual_l1"], 12.5);
  EXPECT_THAT(ReportTable(result),
              HasSubstr("worker 1                 lost a residual of L1 norm 12.5\n"));
  event.mutable_done()->set_lost_residual_l1(0);
  result.record.Apply(event);
  EXPECT_THAT(ReportTable(result), Not(HasSubstr("residual")));
}

TEST(ReportTest, ALossOfAnUnfinishedRunIsOfTheLastSteps) {
  TrainResult result = Result();
  result.record = RunRecord(1);
  WorkerEvent step;
  step.mutable_step()->set_loss(0.5);
  result.record.Apply(step);
  EXPECT_THAT(ReportTable(result), HasSubstr("train loss (last steps)  0.5000\n"));
}

TEST(ReportTest, ALossThatIsNotANumberIsNull) {
  TrainResult result = Result();
  WorkerEvent step;
  step.mutable_step()->set_loss(std::numeric_limits<double>::quiet_NaN());
  result.record.Apply(step);
  const std::string path = testing::TempDir() + "/report.json";
  ASSERT_TRUE(WriteReport(path, ReportJson(result)).ok());
  std::ifstream in(path);
  EXPECT_TRUE(ordered_json::parse(in)["final_train_loss"].is_null());
}

TEST(ReportTest, AnErrorOfWritingTheReportHasThePath) {
  EXPECT_THAT(std::string(CheckReportPath("/nowhere/r.json").message()),
              HasSubstr("/nowhere/r.json"));
  EXPECT_THAT(std::string(WriteReport("/nowhere/r.json", {}).message()),
              HasSubstr("/nowhere/r.json"));
}

TEST(ReportTest, AReportReplacesAnOldOneAsAWhole) {
  const std::string path = testing::TempDir() + "/replaced.json";
  std::ofstream(path) << "an old report";
  std::ifstream old(path);
  ASSERT_TRUE(CheckReportPath(path).ok());
  ASSERT_TRUE(WriteReport(path, {{"steps", 1}}).ok());
  // A reader that opened the old file still reads all of it.
  std::string text;
  std::getline(old, text);
  EXPECT_EQ(text, "an old report");
  std::ifstream in(path);
  EXPECT_EQ(ordered_json::parse(in)["steps"], 1);
}

TEST(ReportTest, APathThatIsNotARegularFileIsKept) {
  const std::string link = testing::TempDir() + "/link.json";
  std::filesystem::remove(link);
  std::filesystem::create_symlink("/dev/null", link);
  EXPECT_TRUE(CheckReportPath(link).ok());
  EXPECT_TRUE(WriteReport(link, {{"steps", 1}}).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace thinwire
