#include "config/site_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/job.h"
#include "config/job_text.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

JobText Parse(const std::string& text) { return ParseJobText(text, "job.textproto").value(); }

TEST(SiteJobTest, TheJobOfASiteHasOneServerAndExactLinks) {
  const JobConfig config = Parse(R"(
      name: "wide" servers: 3
      consistency { mode: ssp slack: 2 workers: 2 fold_every: 2 lease_seconds: 4 }
      optimization { optimizer: sgd learning_rate: 0.1 weight_decay: 0.1 }
      compression { push: topk density: 0.01 momentum_correction: true pull: delta }
      recovery { durability: log keep_log: true checkpoint_seconds: 7 }
      task { model: mlp batch_size: 16 seed: 3 }
      straggler: "1:20ms")")
                               .config;
  ASSERT_TRUE(CheckJob(config).ok()) << CheckJob(config).status();
  const absl::StatusOr<JobConfig> site = SiteJob(config, {.site = 1, .workers = 5});
  ASSERT_TRUE(site.ok()) << site.status();
  const absl::StatusOr<JobSpec> spec = CheckJob(*site);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "wide-site-1");
  EXPECT_EQ(spec->server_count, 1u);
  EXPECT_EQ(spec->rule.mode(), "sync");
  EXPECT_EQ(spec->rule.workers, 5u);
  EXPECT_EQ(spec->lease, absl::Seconds(4));
  EXPECT_EQ(spec->push.codec.id, CodecId::kFp32);
  EXPECT_EQ(spec->pull_codec, CodecId::kFp32);
  EXPECT_FALSE(spec->publish.has_value());
  EXPECT_EQ(spec->optimizer, OptimizerSpec());
  EXPECT_EQ(spec->recovery.durability, Durability::kCheckpoint);
  EXPECT_EQ(spec->recovery.checkpoint_interval, absl::Seconds(7));
  EXPECT_EQ(spec->task, CheckJob(config)->task);
}

TEST(SiteJobTest, AJobWithoutDurabilityHasSitesWithoutIt) {
  const absl::StatusOr<JobConfig> site = SiteJob(JobConfig(), {.site = 0, .workers = 1});
  ASSERT_TRUE(site.ok()) << site.status();
  EXPECT_EQ(CheckJob(*site)->recovery.durability, Durability::kNone);
}

TEST(SiteJobTest, ASiteBeginsInModeBackup) {
  const absl::StatusOr<JobConfig> site =
      SiteJob(JobConfig(), {.site = 0, .workers = 4, .backup = 1});
  ASSERT_TRUE(site.ok()) << site.status();
  const absl::StatusOr<JobSpec> spec = CheckJob(*site);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->rule.mode(), "backup");
  EXPECT_EQ(spec->rule.quorum, 3u);
  EXPECT_EQ(SiteJob(JobConfig(), {.site = 0, .workers = 2, .backup = 2}).status().message(),
            "--site_backup: out of range (expected below 2, the number of workers of the site, got "
            "2)");
  const JobConfig ordered = Parse("consistency { ordered_fold: true }").config;
  EXPECT_EQ(SiteJob(ordered, {.site = 0, .workers = 2, .backup = 1}).status().message(),
            "--site_backup: not possible with ordered_fold, which needs mode sync (expected 0, got "
            "1)");
}

TEST(SiteJobTest, ASiteIsAWorkerOfTheJob) {
  const JobConfig config = Parse("consistency { workers: 2 }").config;
  EXPECT_TRUE(SiteJob(config, {.site = 1, .workers = 1}).ok());
  EXPECT_EQ(SiteJob(config, {.site = 2, .workers = 1}).status().message(),
            "--site: out of range (expected below 2, the number of workers of the job, got 2)");
}

TEST(SiteJobTest, ASiteHasNoSitesOfItsOwn) {
  const absl::StatusOr<JobConfig> site = SiteJob(JobConfig(), {.site = 0, .workers = 2});
  ASSERT_TRUE(site.ok()) << site.status();
  EXPECT_THAT(std::string(SiteJob(*site, {.site = 0, .workers = 2}).status().message()),
              HasSubstr("name: the job of a site has no sites of its own (expected a name without "
                        "-site-NUMBER at its end, got train-site-0)"));
  EXPECT_TRUE(SiteJob(Parse("name: \"on-site-work\"").config, {.site = 0, .workers = 2}).ok());
}

TEST(SiteJobTest, SettingsThatNeedEveryWorkerAreRefusedWithTheirPlaces) {
  const std::string texts[] = {
      "task { local_steps: 4 }",
      "optimization { schedule: noise_scale largest_batch: 512 }",
      "optimization { optimizer: average }",
      "compression { push: adaptive }",
  };
  for (const std::string& text : texts) {
    const JobText job = Parse(text);
    const absl::Status status = SiteJob(job.config, {.site = 0, .workers = 2}, job.places).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("job.textproto:1:")) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("not possible in a job with sites"))
        << text;
  }
}

}  // namespace
}  // namespace thinwire
