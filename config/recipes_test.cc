#include "config/recipes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/effective.h"
#include "config/job.h"
#include "config/job_text.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::Not;

// Returns the job file TEXT, "job", with its recipe expanded.
JobText Expanded(const std::string& text) {
  auto job = ParseJobText(text, "job");
  EXPECT_TRUE(job.ok()) << job.status();
  ExpandRecipe(job->config, job->places);
  return *std::move(job);
}

std::string Error(const std::string& text) {
  const JobText job = Expanded(text);
  return std::string(CheckJob(job.config, job.places).status().message());
}

TEST(RecipesTest, SparseStandsForItsSettings) {
  const JobText job = Expanded("compression { recipe: sparse }");
  EXPECT_EQ(ChangedText(job.config),
            "optimization { lazy_slots: true }\n"
            "compression { push: topk pull: delta topk_values: fp8_e5m2 topk_indices: golomb_rice "
            "density_warmup: 0.2 topk_least: 32 }\n");
  EXPECT_TRUE(job.config.compression().has_density()) << "also the ones that equal the default";
  EXPECT_FALSE(job.config.compression().has_recipe());
  EXPECT_TRUE(CheckJob(job.config, job.places).ok());
  EXPECT_EQ(RecipesText(),
            "sparse: lazy_slots true, push topk, pull delta, density 0.01, topk_values fp8_e5m2, "
            "topk_indices golomb_rice, density_warmup 0.2, topk_least 32.");
}

TEST(RecipesTest, AnExpandedJobStaysTheSame) {
  JobText job = Expanded("compression { recipe: sparse density: 0.02 }");
  const JobConfig once = job.config;
  ExpandRecipe(job.config, job.places);
  EXPECT_EQ(job.config.DebugString(), once.DebugString());
  EXPECT_EQ(Expanded(once.DebugString()).config.DebugString(), once.DebugString());
  for (const char* text : {"", "compression { push: fp8_e5m2 }"}) {
    EXPECT_EQ(Expanded(text).config.DebugString(), ParseJobText(text, "job")->config.DebugString());
  }
  EXPECT_EQ(ChangedText(Expanded("compression { recipe: none }").config), "");
}

TEST(RecipesTest, AGivenSettingKeepsItsValue) {
  const JobConfig config = Expanded(
                               "compression { recipe: sparse density: 0.001 pull: fp16 } "
                               "optimization { lazy_slots: false optimizer: momentum }")
                               .config;
  EXPECT_EQ(config.compression().density(), 0.001);
  EXPECT_EQ(config.compression().pull(), Compression::Codec::fp16);
  EXPECT_FALSE(config.optimization().lazy_slots());
  EXPECT_EQ(config.compression().push(), Compression::Codec::topk);
  FieldPlaces places;
  JobConfig few =
      ParseJobText("compression { recipe: sparse push: fp8_e5m2 pull: fp16 }", "job")->config;
  EXPECT_EQ(ExpandRecipe(few, places), "sparse: lazy_slots true");
  EXPECT_EQ(ExpandRecipe(few, places), "");
}

TEST(RecipesTest, ASettingWithoutEffectBesideTheGivenOnesIsLeftOut) {
  for (const char* push : {"fp8_e5m2", "auto", "powersgd"}) {
    const JobText job = Expanded(std::string("compression { recipe: sparse push: ") + push + " }");
    EXPECT_FALSE(job.config.compression().has_density()) << push;
    EXPECT_FALSE(job.config.compression().has_density_warmup()) << push;
    EXPECT_EQ(job.places.count("density"), 0u);
    EXPECT_TRUE(CheckJob(job.config, job.places).ok()) << push;
  }
}

TEST(RecipesTest, AProblemNamesTheRecipeAndTheField) {
  EXPECT_EQ(
      Error("optimization { optimizer: lamb } compression { recipe: sparse }"),
      "job:1:48: recipe: sparse: lazy_slots: no norms of tensors in a sparse update (expected "
      "false, or another optimizer, got true with optimizer: lamb)");
  EXPECT_EQ(Error("compression { recipe: sparse } optimization { schedule: noise_scale } "
                  "consistency { workers: 2 }"),
            "job:1:15: recipe: sparse: density_warmup: a part of a number of steps that changes "
            "(expected 0 with schedule: noise_scale, got 0.2)");
  EXPECT_EQ(Error("compression { recipe: sparse } optimization { optimizer: average }"),
            "job:1:47: optimizer: average is only valid with a pull other than delta and "
            "delta_CODEC (got pull: delta)");
}

TEST(RecipesTest, APlaceOfAFlagNamesTheRecipe) {
  JobConfig config;
  config.mutable_compression()->set_recipe(Compression::Recipe::sparse);
  config.mutable_optimization()->set_optimizer(Optimization::Optimizer::lars);
  FieldPlaces places = {{"recipe", "--recipe"}, {"optimizer", "--optimizer"}};
  ExpandRecipe(config, places);
  EXPECT_THAT(std::string(CheckJob(config, places).status().message()),
              HasSubstr("--recipe: sparse: lazy_slots: no norms"));
  EXPECT_EQ(places.count("recipe"), 0u);
  EXPECT_EQ(places["optimizer"], "--optimizer");
}

TEST(RecipesTest, EveryModeAndOptimizerWithSlotsAcceptsSparse) {
  int checked_count = 0;
  for (const char* mode : {"sync", "backup backup: 1", "ssp slack: 2", "async"}) {
    for (const char* optimizer :
         {"sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "lion"}) {
      for (const char* durability : {"none", "checkpoint", "log"}) {
        EXPECT_EQ(Error(std::string("consistency { workers: 3 mode: ") + mode +
                        " } optimization { optimizer: " + optimizer + " } recovery { durability: " +
                        durability + " } compression { recipe: sparse }"),
                  "");
        ++checked_count;
      }
    }
  }
  EXPECT_EQ(checked_count, 84);
}

TEST(RecipesTest, AJobThatIsNotExpandedIsRefused) {
  JobConfig config;
  config.mutable_compression()->set_recipe(Compression::Recipe::sparse);
  EXPECT_EQ(CheckJob(config).status().message(),
            "recipe: not replaced by its settings (expected none, got sparse)");
}

}  // namespace
}  // namespace thinwire
