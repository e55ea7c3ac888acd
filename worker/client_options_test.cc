#include "worker/client_options.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "google/protobuf/text_format.h"

namespace thinwire {
namespace {

absl::StatusOr<ClientOptions> Options(const std::string& text, const RunLength& planned = {}) {
  WorkerConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config));
  return MakeClientOptions(config, planned);
}

TEST(ClientOptionsTest, DefaultsPushAndPullFp32) {
  const ClientOptions options = *Options("");
  EXPECT_EQ(options.push.id, CodecId::kFp32);
  EXPECT_EQ(options.pull, CodecId::kFp32);
  EXPECT_TRUE(options.error_feedback);
  EXPECT_FALSE(options.correction.enabled);
  EXPECT_EQ(options.warmup.density.part, 0);
  EXPECT_EQ(options.warmup.first_part, 0);
  EXPECT_EQ(options.gradient_clip, 0);
  EXPECT_EQ(options.residual_file, "");
}

TEST(ClientOptionsTest, TellsWhoTheWorkerIsAndHowLongTheRunIs) {
  const ClientOptions options =
      *Options("job: 'j' worker: 2 workers: 4 servers: ['a:1', 'b:2'] silence_seconds: 3",
               {.examples = 1000, .steps = 25});
  EXPECT_EQ(options.job, "j");
  EXPECT_EQ(options.worker, WorkerId{2});
  EXPECT_EQ(options.worker_count, 4u);
  EXPECT_EQ(options.server_count, 2u);
  EXPECT_EQ(options.silence, absl::Seconds(3));
  EXPECT_EQ(options.planned_examples, 1000u);
  EXPECT_EQ(options.planned_steps, 25u);
}

TEST(ClientOptionsTest, SparseTrainingIsPassedOn) {
  const ClientOptions options = *Options(R"(
      compression {
        push: "topk" density: 0.001 topk_values: "fp8_e5m2" density_warmup: 0.2 warmup_density: 0.25
        first_push: "topk" first_push_part: 0.1 momentum_correction: true correction_momentum: 0.5
        correction_nesterov: true factor_masking: false gradient_clip: 2 shard_size: 8192
      }
      residual_file: "/r/w0")");
  const CodecSpec push = {.id = CodecId::kTopK, .density = 0.001, .values = CodecId::kFp8E5m2};
  EXPECT_EQ(options.push, push);
  EXPECT_EQ(options.warmup.density.part, 0.2);
  EXPECT_EQ(options.warmup.density.first, 0.25);
  EXPECT_EQ(options.warmup.first_part, 0.1);
  EXPECT_EQ(options.warmup.first, push);
  EXPECT_EQ(options.correction,
            (CorrectionOptions{
                .enabled = true, .momentum = 0.5f, .nesterov = true, .factor_masking = false}));
  EXPECT_EQ(options.gradient_clip, 2);
  EXPECT_EQ(options.shard_size, 8192u);
  EXPECT_EQ(options.residual_file, "/r/w0");
}

TEST(ClientOptionsTest, ARuleChoosesFromWhatIsNamedOrFromTheDenseCodecs) {
  EXPECT_EQ(Options("")->choose, std::nullopt);
  const ClientOptions dense = *Options("compression { push: 'auto' }");
  EXPECT_EQ(dense.choose, ChoiceRule::kAuto);
  ASSERT_EQ(dense.candidates.size(), 3u);
  EXPECT_EQ(dense.candidates[0].id, CodecId::kBf16);
  const ClientOptions named =
      *Options("compression { push: 'fastest' auto_codecs: 'topk' density: 0.125 }");
  EXPECT_EQ(named.choose, ChoiceRule::kFastest);
  ASSERT_EQ(named.candidates.size(), 1u);
  EXPECT_EQ(named.candidates[0], (CodecSpec{.id = CodecId::kTopK, .density = .125}));
}

TEST(ClientOptionsTest, DeltasAreReadInNoCodecOfTheReaders) {
  EXPECT_EQ(Options("compression { pull: 'delta' }")->pull, std::nullopt);
  EXPECT_EQ(Options("compression { pull: 'bf16' }")->pull, CodecId::kBf16);
}

TEST(ClientOptionsTest, ACodecThatThereIsNotIsAnError) {
  for (const char* field :
       {"push", "pull", "topk_values", "first_push", "push: 'auto' auto_codecs"}) {
    const auto options = Options(std::string("compression { ") + field + ": 'zip' }");
    EXPECT_TRUE(absl::IsInvalidArgument(options.status())) << field;
  }
}

}  // namespace
}  // namespace thinwire
