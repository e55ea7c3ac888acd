// The table of optimizers for the contract tests. Each row contains the expected properties and
// results of one optimizer that updates parameters. For tests only.
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_CASES_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_CASES_H_

#include <array>
#include <ostream>
#include <vector>

#include "server/core/optimizer/optimizer.h"

namespace thinwire {

struct OptimizerCase {
  OptimizerKind kind = OptimizerKind::kSgd;
  int slot_count = 0;
  // True if an update with gradient 0, after updates with other gradients, changes the masters.
  bool remembers_gradients = false;
  bool decoupled_decay = false;  // whether weight decay multiplies the masters directly
  // A learning rate that reaches the minimum of a quadratic function within 2000 updates.
  float bowl_rate = 0;
  // Expected masters after the ten updates of the test TenUpdatesGiveTheRecordedValues, without and
  // with weight decay. They were computed in double precision from the formulas of the papers
  // (moments as sums over all earlier gradients), not from the recurrences that the kernels use.
  std::array<double, 3> without_decay;
  std::array<double, 3> with_decay;

  double weight_decay = 0;  // set by OptimizerCases()

  const std::array<double, 3>& recorded() const {
    return weight_decay == 0 ? without_decay : with_decay;
  }
  friend std::ostream& operator<<(std::ostream& out, const OptimizerCase& c) {
    return out << c.kind << (c.weight_decay == 0 ? "" : "WithDecay");
  }
};

// Returns each row of the table of optimizers twice: without and with weight decay.
inline std::vector<OptimizerCase> OptimizerCases() {
  const std::vector<OptimizerCase> rows = {
      {.kind = OptimizerKind::kSgd,
       .slot_count = 0,
       .bowl_rate = 0.05f,
       .without_decay = {0.960937500000, -2.015625000000, 0.507812500000},
       .with_decay = {0.887823800689, -1.862280305977, 0.468834467740}},
      {.kind = OptimizerKind::kMomentum,
       .slot_count = 1,
       .remembers_gradients = true,
       .bowl_rate = 0.05f,
       .without_decay = {0.851930916309, -2.098253935575, 0.586900383234},
       .with_decay = {0.655510029076, -1.658463281921, 0.476507131964}},
      {.kind = OptimizerKind::kNesterov,
       .slot_count = 1,
       .remembers_gradients = true,
       .bowl_rate = 0.05f,
       .without_decay = {0.849885687232, -2.089315451682, 0.572987787426},
       .with_decay = {0.641943205587, -1.612256552603, 0.451682436942}},
      {.kind = OptimizerKind::kAdam,
       .slot_count = 2,
       .remembers_gradients = true,
       .bowl_rate = 0.02f,
       .without_decay = {0.803534514911, -2.183485066518, 0.603408805106},
       .with_decay = {0.667515346320, -1.867790725342, 0.512416773980}},
      {.kind = OptimizerKind::kAdamW,
       .slot_count = 2,
       .remembers_gradients = true,
       .decoupled_decay = true,
       .bowl_rate = 0.02f,
       .without_decay = {0.803534514911, -2.183485066518, 0.603408805106},
       .with_decay = {0.737088256583, -2.022064577485, 0.561139337322}},
      {.kind = OptimizerKind::kAdagrad,
       .slot_count = 1,
       .bowl_rate = 1,
       .without_decay = {0.927811352546, -2.043112686470, 0.539355898146},
       .with_decay = {0.861265660770, -1.899120294228, 0.502605738515}},
      {.kind = OptimizerKind::kLion,
       .slot_count = 1,
       .remembers_gradients = true,
       .decoupled_decay = true,
       .bowl_rate = 0.02f,
       .without_decay = {0.750000000000, -2.250000000000, 0.500000000000},
       .with_decay = {0.681731439068, -2.089124244662, 0.461794055983}},
      {.kind = OptimizerKind::kSignSgd,
       .decoupled_decay = true,
       .bowl_rate = 0.02f,
       .without_decay = {0.937500000000, -2.062500000000, 0.562500000000},
       .with_decay = {0.867778009607, -1.905973296405, 0.520955160905}},
      {.kind = OptimizerKind::kLars,
       .slot_count = 1,
       .remembers_gradients = true,
       .bowl_rate = 0.005f,
       .without_decay = {0.729171600380, -2.261106744269, 0.527458391241},
       .with_decay = {0.374392030541, -1.272517127181, 0.345534399203}},
      {.kind = OptimizerKind::kLamb,
       .slot_count = 2,
       .remembers_gradients = true,
       .decoupled_decay = true,
       .bowl_rate = 0.02f,
       .without_decay = {0.132025261731, -2.515799050430, 0.871361249786},
       .with_decay = {0.130762596748, -1.840591691667, 0.613046881667}},
  };
  std::vector<OptimizerCase> cases;
  for (OptimizerCase c : rows) {
    cases.push_back(c);
    c.weight_decay = 0.125;
    cases.push_back(c);
  }
  return cases;
}

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_OPTIMIZER_CASES_H_
