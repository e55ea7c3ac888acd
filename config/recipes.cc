#include "config/recipes.h"

#include <google/protobuf/text_format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/applicability.h"
#include "config/fields.h"

namespace thinwire {
namespace {

using Recipe = Compression::Recipe;

// docs/configuration.md has the measurements.
constexpr std::string_view kSparse = R"(
  optimization { lazy_slots: true }
  compression {
    push: topk density: 0.01 topk_least: 32 topk_values: fp8_e5m2 topk_indices: golomb_rice
    density_warmup: 0.2 pull: delta
  }
)";

// Returns a job with the settings of RECIPE only.
JobConfig SettingsOf(int recipe) {
  JobConfig settings;
  const std::string_view text = recipe == Recipe::sparse ? kSparse : "";
  google::protobuf::TextFormat::ParseFromString(std::string(text), &settings);
  return settings;
}

std::vector<Field> GivenFields(const JobConfig& config) {
  std::vector<Field> given;
  for (Field& field : Settings(*JobConfig::descriptor())) {
    if (IsGiven(config, field)) given.push_back(std::move(field));
  }
  return given;
}

// Returns "sparse: push topk, density 0.01", with those of FIELDS that CONFIG gives.
std::string TextOf(int recipe, const JobConfig& config, const std::vector<Field>& fields) {
  std::vector<std::string> words;
  for (const Field& field : fields) {
    if (!IsGiven(config, field)) continue;
    words.push_back(absl::StrCat(field.name(), " ", ValueText(config, field)));
  }
  return absl::StrCat(Recipe::Value_Name(static_cast<Recipe::Value>(recipe)), ": ",
                      words.empty() ? "no setting" : absl::StrJoin(words, ", "));
}

// Returns the place of the settings of RECIPE, for messages.
std::string PlaceOf(Recipe::Value recipe, const FieldPlaces& places) {
  const std::string& name = Recipe::Value_Name(recipe);
  const auto place = places.find("recipe");
  if (place == places.end()) return absl::StrCat("recipe: ", name);
  // A flag is already named like the field.
  return absl::StrCat(place->second, IsFilePlace(place->second) ? ": recipe: " : ": ", name);
}

}  // namespace

std::string ExpandRecipe(JobConfig& config, FieldPlaces& places) {
  if (!config.compression().has_recipe()) return "";
  const Recipe::Value recipe = config.compression().recipe();
  JobConfig settings = SettingsOf(recipe);
  for (const Field& field : GivenFields(config)) Clear(settings, field);
  const std::vector<Field> added = GivenFields(settings);
  config.MergeFrom(settings);
  const std::string place = PlaceOf(recipe, places);
  for (const Field& field : added) places[field.name()] = place;
  // A setting that is left out may be the reason for another one.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Field& field : added) {
      if (!IsGiven(config, field) || Applies(field.name(), config)) continue;
      Clear(config, field);
      places.erase(field.name());
      changed = true;
    }
  }
  config.mutable_compression()->clear_recipe();
  places.erase("recipe");
  return recipe == Recipe::none ? "" : TextOf(recipe, config, added);
}

std::string RecipesText() {
  std::vector<std::string> sentences;
  for (int recipe = Recipe::Value_MIN; recipe <= Recipe::Value_MAX; ++recipe) {
    if (recipe == Recipe::none) continue;
    const JobConfig settings = SettingsOf(recipe);
    sentences.push_back(absl::StrCat(TextOf(recipe, settings, GivenFields(settings)), "."));
  }
  return absl::StrJoin(sentences, " ");
}

}  // namespace thinwire
