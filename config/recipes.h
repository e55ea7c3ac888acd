// A recipe is a short word for several settings: the setting `recipe` of a job stands for the
// settings of a table, of which the job may give some itself.
//
//   compression { recipe: sparse density: 0.02 }
//   compression { push: topk density: 0.02 topk_values: fp8_e5m2 ... }
//
// ExpandRecipe replaces the first job by the second one after the job file is read and the flags are
// applied. Everything else in the program sees ordinary settings.
#ifndef THINWIRE_CONFIG_RECIPES_H_
#define THINWIRE_CONFIG_RECIPES_H_

#include <string>

#include "config/places.h"
#include "proto/job.pb.h"

namespace thinwire {

// Replaces the recipe of CONFIG by its settings. A setting that CONFIG gives keeps its value, and a
// setting of the recipe that has no effect beside the given ones is left out. A message about an
// added setting names the recipe: "job.textproto:2:15: recipe: sparse: lazy_slots: ...". Returns the
// recipe with the added settings, "sparse: push topk, density 0.01", or "" without a recipe.
std::string ExpandRecipe(JobConfig& config, FieldPlaces& places);

// Returns a sentence for each recipe with the settings that it stands for: "sparse: push topk,
// density 0.01, ...".
std::string RecipesText();

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_RECIPES_H_
