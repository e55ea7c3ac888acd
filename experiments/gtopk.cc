// Prints the gTop-k table of the README in this folder: lost mass and final loss on the toy
// problem.
#include <cstdio>
#include <memory>
#include <vector>

#include "experiments/aggregation.h"
#include "experiments/toy_run.h"

namespace thinwire {
namespace {

constexpr size_t kSelected = 10;  // entries that each worker selects from 1000 values
constexpr double kRates[] = {0.32, 0.04, 0.02, 0.01, 0.005};

struct Row {
  const char* name;
  std::unique_ptr<Aggregation> (*make)(const ToySettings& settings);
};

const Row kRows[] = {
    {"dense", [](const ToySettings& s) { return MakeDenseAggregation(s.value_count); }},
    {"tree, returned",
     [](const ToySettings& s) {
       return MakeTreeAggregation(s.value_count, s.worker_count, kSelected);
     }},
    {"exact sum, returned",
     [](const ToySettings& s) {
       return MakeExactAggregation(s.value_count, s.worker_count, kSelected);
     }},
    {"kept at the server",
     [](const ToySettings& s) {
       return MakeServerAggregation(s.value_count, s.worker_count, kSelected);
     }},
};

// Runs the toy problem once per learning rate in kRates, with the aggregation method of the table
// row ROW. Returns the outcome with the smallest final loss, and stores the learning rate of that
// run in BEST_RATE.
ToyOutcome BestRun(const Row& row, ToySettings settings, double& best_rate) {
  ToyOutcome best{.loss = 1e300};
  for (const double rate : kRates) {
    settings.rate = rate;
    const ToyOutcome outcome = RunToy(settings, *row.make(settings));
    if (!(outcome.loss < best.loss)) continue;
    best = outcome;
    best_rate = rate;
  }
  return best;
}

void PrintTable() {
  std::printf("%-20s %3s %5s %7s %11s %8s %9s\n", "aggregation", "P", "sigma", "rate", "loss",
              "leak %", "missing");
  for (const size_t workers : {4, 8, 32}) {
    for (const double sigma : {0.0, 1.0}) {
      const ToySettings settings = {.worker_count = workers, .sigma = sigma};
      std::printf("%-20s %3zu %5.1f %7s %11.5f\n", "(start)", workers, sigma, "",
                  ToyStartLoss(settings));
      for (const Row& row : kRows) {
        double rate = 0;
        const ToyOutcome outcome = BestRun(row, settings, rate);
        std::printf("%-20s %3zu %5.1f %7.4f %11.5f %8.3f %9.1e\n", row.name, workers, sigma, rate,
                    outcome.loss, 100 * outcome.leak, outcome.missing);
      }
    }
  }
}

}  // namespace
}  // namespace thinwire

int main() {
  thinwire::PrintTable();
  return 0;
}
