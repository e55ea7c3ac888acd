#include "proto/config_check.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

namespace thinwire {
namespace {

using testing::HasSubstr;

template <typename Config>
Config Parse(const std::string& text) {
  Config config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::string ErrorOf(const std::string& text) {
  return std::string(CheckTrainConfig(Parse<TrainConfig>(text)).message());
}

TEST(ConfigCheckTest, TheDefaultsAreGood) {
  EXPECT_TRUE(CheckTrainConfig(TrainConfig()).ok());
  EXPECT_TRUE(CheckServerConfig(ServerConfig()).ok());
  EXPECT_TRUE(CheckWorkerConfig(Parse<WorkerConfig>("servers: '127.0.0.1:1'")).ok());
}

TEST(ConfigCheckTest, EveryModeTakesItsOwnFields) {
  for (const char* text : {"mode: 'sync' ordered_fold: true", "mode: 'backup' workers: 4 backup: 1",
                           "mode: 'ssp' slack: 3 fold_every: 2", "mode: 'async' fold_every: 4"}) {
    EXPECT_EQ(ErrorOf(std::string("consistency { ") + text + " }"), "");
  }
}

TEST(ConfigCheckTest, AFieldOfAnotherModeIsRefused) {
  EXPECT_EQ(ErrorOf("consistency { workers: 4 backup: 1 }"),
            "field \"backup\": want 0, for it is of mode backup only, got it in mode sync");
  EXPECT_THAT(ErrorOf("consistency { mode: 'async' slack: 1 }"), HasSubstr("\"slack\""));
  EXPECT_THAT(ErrorOf("consistency { mode: 'backup' fold_every: 2 }"), HasSubstr("\"fold_every\""));
  EXPECT_THAT(ErrorOf("consistency { mode: 'ssp' ordered_fold: true }"),
              HasSubstr("\"ordered_fold\""));
}

TEST(ConfigCheckTest, BackupIsLessThanWorkers) {
  EXPECT_EQ(ErrorOf("consistency { mode: 'backup' workers: 2 backup: 2 }"),
            "field \"backup\": want less than workers (2), got 2");
}

TEST(ConfigCheckTest, AnUnknownNameIsToldTheKnownOnesAndTheNearest) {
  EXPECT_EQ(ErrorOf("optimization { optimizer: 'adma' }"),
            "field \"optimizer\": want one of sgd, momentum, nesterov, adam, adamw, adagrad, got "
            "\"adma\"; did you mean \"adam\"?");
  EXPECT_THAT(ErrorOf("optimization { schedule: 'cosin' }"), HasSubstr("did you mean \"cosine\"?"));
  EXPECT_THAT(ErrorOf("task { model: 'resnet2' }"), HasSubstr("did you mean \"resnet20\"?"));
  EXPECT_THAT(ErrorOf("task { dataset: 'cifar' }"), HasSubstr("cifar10"));
  EXPECT_THAT(ErrorOf("compression { push: 'fp8' }"), HasSubstr("fp8_e5m2"));
  EXPECT_EQ(ErrorOf("compression { pull: 'topk' }"),
            "field \"pull\": want one of fp32, fp16, bf16, fp8_e5m2, fp8_e4m3, int8, got \"topk\"");
}

TEST(ConfigCheckTest, APushMayBeChosenByARuleFromKnownCodecs) {
  EXPECT_EQ(ErrorOf("compression { push: 'auto' auto_codecs: [ 'bf16', 'topk' ] }"), "");
  EXPECT_EQ(ErrorOf("compression { push: 'fastest' }"), "");
  EXPECT_THAT(ErrorOf("compression { push: 'auto' auto_codecs: 'bf61' }"),
              HasSubstr("did you mean \"bf16\"?"));
  EXPECT_EQ(ErrorOf("compression { auto_codecs: 'bf16' }"),
            "field \"auto_codecs\": want nothing, for it is of push auto and fastest only, got it "
            "with fp32");
  EXPECT_EQ(ErrorOf("compression { push: 'auto' first_push_part: 0.2 }"),
            "field \"first_push_part\": want 0 with push auto, got 0.2");
}

TEST(ConfigCheckTest, ASelectionHasADensityAndInSyncItsRestMayGoBackToTheWorkers) {
  EXPECT_EQ(ErrorOf("optimization { gradient_selection: 'gtopk' selection_density: 0.01 }"), "");
  EXPECT_EQ(
      ErrorOf("optimization { selection_density: 0.01 }"),
      "field \"selection_density\": want nothing, for it is of gradient_selection gtopk only, "
      "got it with none");
  EXPECT_EQ(ErrorOf("optimization { gradient_selection: 'gtopk' selection_rest: 'workers' }"), "");
  EXPECT_EQ(ErrorOf("optimization { gradient_selection: 'gtopk' selection_rest: 'peers' }"),
            "field \"selection_rest\": want one of server, workers, got \"peers\"");
  EXPECT_EQ(
      ErrorOf("optimization { selection_rest: 'workers' }"),
      "field \"selection_rest\": want server, for workers is of gradient_selection gtopk only, "
      "got workers with none");
  EXPECT_EQ(ErrorOf("optimization { gradient_selection: 'gtopk' selection_rest: 'workers' } "
                    "consistency { mode: 'ssp' slack: 2 }"),
            "field \"selection_rest\": want server, for workers is of mode sync only, got workers "
            "with mode ssp");
}

TEST(ConfigCheckTest, ANumberOutsideItsRangeIsRefused) {
  for (const char* text : {"servers: 0",
                           "silence_seconds: 0",
                           "silence_seconds: inf",
                           "consistency { workers: 0 }",
                           "consistency { workers: 100000 }",
                           "consistency { mode: 'ssp' fold_every: 0 }",
                           "consistency { lease_seconds: -1 }",
                           "consistency { start_timeout_seconds: nan }",
                           "optimization { learning_rate: -0.1 }",
                           "compression { twobit_threshold: 0 }",
                           "compression { qsgd_levels: 128 }",
                           "compression { qsgd_levels: 0 }",
                           "compression { onebit_group: 12 }",
                           "compression { topk_least: 0 }",
                           "optimization { learning_rate: nan }",
                           "optimization { momentum: 1 }",
                           "optimization { beta1: -0.1 }",
                           "optimization { beta2: 1 }",
                           "optimization { epsilon: 0 }",
                           "optimization { epsilon: 1e-60 }",
                           "optimization { learning_rate: 1e60 }",
                           "optimization { weight_decay: inf }",
                           "optimization { warmup: 1.1 }",
                           "optimization { schedule: 'step' decay_at: 1.5 }",
                           "optimization { schedule: 'step' decay_at: 0.6 decay_at: 0.5 }",
                           "optimization { schedule: 'step' decay_factor: 2 }",
                           "optimization { power: -1 }",
                           "optimization { decay_at: 0.5 }",
                           "compression { density: 0 }",
                           "compression { density: 1.01 }",
                           "compression { density: nan }",
                           "compression { topk_values: 'topk' }",
                           "compression { shard_size: 262145 }",
                           "task { data_dir: '' }",
                           "task { batch_size: 0 }",
                           "task { epochs: 0 }",
                           "task { device: 'gpu' }",
                           "task { device: 'cuda:' }",
                           "task { threads: 0 }",
                           "task { model: 'torchscript' }",
                           "task { model_file: 'x.pt' }"}) {
    EXPECT_NE(ErrorOf(text), "") << text;
  }
}

TEST(ConfigCheckTest, MomentumIsCorrectedInAResidual) {
  EXPECT_EQ(ErrorOf("compression { push: 'topk' momentum_correction: true }"), "");
  EXPECT_EQ(ErrorOf("compression { push: 'topk' momentum_correction: true error_feedback: false }"),
            "field \"error_feedback\": want true, for momentum_correction needs it, got false");
}

TEST(ConfigCheckTest, AProblemStandsWhereItsFieldWasSet) {
  const auto config =
      Parse<TrainConfig>("optimization { schedule: 'step' decay_at: 0.5 decay_at: 7 }");
  EXPECT_EQ(CheckTrainConfig(config, {{"decay_at[1]", "--decay_at"}}).message(),
            "--decay_at: field \"decay_at\": want a number from 0 to 1, got 7");
}

TEST(ConfigCheckTest, AServerKnowsItsPlaceAndItsAddress) {
  const auto error = [](const char* text) {
    return std::string(CheckServerConfig(Parse<ServerConfig>(text)).message());
  };
  EXPECT_EQ(error("server: 1 servers: 2 listen: '[::1]:0'"), "");
  EXPECT_EQ(error("server: 2 servers: 2"), "field \"server\": want less than servers (2), got 2");
  EXPECT_EQ(error("listen: 'localhost'"),
            "field \"listen\": want host:port, the port from 0 to 65535, got \"localhost\"");
  EXPECT_NE(error("listen: 'localhost:70000'"), "");
  EXPECT_NE(error("job: 'My Job'"), "");
}

TEST(ConfigCheckTest, AWorkerKnowsItsServers) {
  const auto error = [](const char* text) {
    return std::string(CheckWorkerConfig(Parse<WorkerConfig>(text)).message());
  };
  EXPECT_EQ(error(""), "field \"servers\": want the address of every server, got none");
  EXPECT_NE(error("servers: 'a:1' servers: 'b:0'"), "");
  EXPECT_NE(error("servers: 'a:1' delay_seconds: -1"), "");
  EXPECT_NE(error("servers: 'a:1' worker: 3 workers: 3"), "");
}

TEST(ConfigCheckTest, APrecisionHasANameAndALossScaleIsAPowerOfTwo) {
  EXPECT_EQ(ErrorOf("task { precision: 'bf16' loss_scale: 1024 loss_scale_interval: 10 }"), "");
  EXPECT_EQ(ErrorOf("task { precision: 'fp16' loss_scale_interval: 10 }"), "");
  EXPECT_EQ(ErrorOf("task { loss_scale: 1 }"), "");
  EXPECT_EQ(ErrorOf("task { loss_scale: 16777216 }"), "");
  EXPECT_EQ(ErrorOf("task { precision: 'bf61' }"),
            "field \"precision\": want one of fp32, bf16, fp16, got \"bf61\"; did you mean "
            "\"bf16\"?");
  EXPECT_EQ(ErrorOf("task { loss_scale: 3 }"),
            "field \"loss_scale\": want 0 or a power of two up to 16777216, got 3");
  EXPECT_THAT(ErrorOf("task { loss_scale: 33554432 }"), HasSubstr("up to 16777216, got 33554432"));
  EXPECT_EQ(ErrorOf("task { loss_scale: 2 loss_scale_interval: 0 }"),
            "field \"loss_scale_interval\": want at least 1, got 0");
  EXPECT_EQ(ErrorOf("task { precision: 'bf16' loss_scale_interval: 10 }"),
            "field \"loss_scale_interval\": want nothing, for it is of precision fp16 or a "
            "loss_scale only, got it with precision bf16");
}

TEST(ConfigCheckTest, AStragglerIsAWorkerAndADelay) {
  EXPECT_EQ(ParseStraggler("3:50ms").value(), (Straggler{WorkerId{3}, absl::Milliseconds(50)}));
  for (const char* text : {"", "3", "3:", ":50ms", "3:50", "3:-1s", "x:1s", "3:2h", "3:inf"}) {
    EXPECT_FALSE(ParseStraggler(text).ok()) << text;
  }
  EXPECT_EQ(ErrorOf("straggler: '1:1s'"),
            "field \"straggler\": want a worker below workers (1), got 1");
}

}  // namespace
}  // namespace thinwire
