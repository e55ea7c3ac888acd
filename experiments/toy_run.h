// RunToy runs plain gradient descent on a toy problem with one aggregation method and reports the
// final loss and the lost mass. The result is a pure function of the settings.
//
// Each worker has a quadratic loss with its own minimum, and the mean over workers is minimized:
//
//   f_w(x) = sum over i of steepness_i (x_i - minimum_wi)^2 / 2
//   gradient_wi = steepness_i (x_i - minimum_wi) + sigma * noise
//
// steepness_i is log-uniform from 0.1 to 1. minimum_wi = common_i + own_wi, both with mean 0 and
// standard deviation 1. One seed determines all random numbers, on every machine.
#ifndef THINWIRE_EXPERIMENTS_TOY_RUN_H_
#define THINWIRE_EXPERIMENTS_TOY_RUN_H_

#include <cstddef>
#include <cstdint>

#include "experiments/aggregation.h"

namespace thinwire {

struct ToySettings {
  size_t value_count = 1000;
  size_t worker_count = 32;
  double sigma = 0;
  double rate = 0.01;
  size_t step_count = 1000;
  uint64_t seed = 1;
};

struct ToyOutcome {
  double loss = 0;  // final loss, minus the smallest possible loss
  double leak = 0;  // sum of lost magnitudes / sum of selected magnitudes, averaged over the steps
  // At the end of the run: the sum of the magnitudes of (gradients - applied - pending), divided by
  // the sum of the magnitudes of the gradients.
  double missing = 0;
};

ToyOutcome RunToy(const ToySettings& settings, Aggregation& aggregation);

// Returns the loss at the start of a run, minus the smallest possible loss.
double ToyStartLoss(const ToySettings& settings);

}  // namespace thinwire

#endif  // THINWIRE_EXPERIMENTS_TOY_RUN_H_
