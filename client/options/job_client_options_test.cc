#include "client/options/job_client_options.h"

#include <gtest/gtest.h>

#include <optional>

namespace thinwire {
namespace {

TEST(ClientOptionsTest, TheDefaultsPushAndPullFp32) {
  const ClientOptions options = MakeClientOptions({}, {});
  EXPECT_EQ(options.push.id, CodecId::kFp32);
  EXPECT_EQ(options.pull, CodecId::kFp32);
  EXPECT_TRUE(options.error_feedback);
  EXPECT_FALSE(options.correction.enabled);
  EXPECT_EQ(options.warmup.density.part, 0);
  EXPECT_EQ(options.warmup.first_part, 0);
  EXPECT_EQ(options.gradient_clip, 0);
  EXPECT_FALSE(options.wait_for_servers);
  EXPECT_EQ(options.state_dir, "");
}

TEST(ClientOptionsTest, TheWorkerAndTheLengthOfTheRunArrive) {
  const ClientOptions options = MakeClientOptions({.name = "j",
                                                   .server_count = 2,
                                                   .rule = Rule::Sync(4),
                                                   .start_timeout = absl::Seconds(7),
                                                   .shard_size = 8192,
                                                   .silence = absl::Seconds(3)},
                                                  {.worker = WorkerId{2},
                                                   .planned_examples = 1000,
                                                   .planned_steps = 25,
                                                   .state_dir = "/state",
                                                   .wait_for_servers = true});
  EXPECT_EQ(options.job, "j");
  EXPECT_EQ(options.worker, WorkerId{2});
  EXPECT_EQ(options.worker_count, 4u);
  EXPECT_EQ(options.server_count, 2u);
  EXPECT_EQ(options.shard_size, 8192u);
  EXPECT_EQ(options.start_timeout, absl::Seconds(7));
  EXPECT_TRUE(options.wait_for_servers);
  EXPECT_EQ(options.silence, absl::Seconds(3));
  EXPECT_EQ(options.planned_examples, 1000u);
  EXPECT_EQ(options.planned_steps, 25u);
  EXPECT_EQ(options.state_dir, "/state");
}

TEST(ClientOptionsTest, EverySettingOfThePushArrives) {
  const PushSpec push = {.codec = {.id = CodecId::kTopK, .density = 0.001},
                         .choose = ChoiceRule::kFastest,
                         .candidates = {{.id = CodecId::kBf16}},
                         .error_feedback = false,
                         .warmup = {.density = {.part = 0.2, .first = 0.25},
                                    .first_part = 0.1,
                                    .first = {.id = CodecId::kQsgd}},
                         .correction = {.enabled = true, .momentum = 0.5f, .nesterov = true},
                         .gradient_clip = 2};
  const ClientOptions options = MakeClientOptions({.push = push}, {});
  EXPECT_EQ(push, (PushSpec{.codec = options.push,
                            .choose = options.choose,
                            .candidates = options.candidates,
                            .error_feedback = options.error_feedback,
                            .warmup = options.warmup,
                            .correction = options.correction,
                            .gradient_clip = options.gradient_clip}));
}

TEST(ClientOptionsTest, ReadersOfDeltasChooseNoCodec) {
  EXPECT_EQ(MakeClientOptions({.publish = PublishOptions()}, {}).pull, std::nullopt);
  EXPECT_EQ(MakeClientOptions({.pull_codec = CodecId::kBf16}, {}).pull, CodecId::kBf16);
}

}  // namespace
}  // namespace thinwire
