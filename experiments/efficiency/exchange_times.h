// The communication times of Shi et al. 2019 (arXiv 1901.04359, section 4), in seconds. A message
// of n values takes alpha + n beta. P workers, a power of two, exchange the gradients of a model of
// m values; sparse methods select k values of each gradient. An index counts as a value.
//
//   dense    ring all-reduce: 2 (P - 1) messages of m / P values, one after the other
//   Top-k    all-gather by recursive doubling: log2 P messages of 2k, 4k, 8k, ... values
//   gTop-k   tree: log2 P messages of 2k values to the root, and log2 P messages of 2k values back
#ifndef THINWIRE_EXPERIMENTS_EFFICIENCY_EXCHANGE_TIMES_H_
#define THINWIRE_EXPERIMENTS_EFFICIENCY_EXCHANGE_TIMES_H_

#include <bit>
#include <cstdint>

namespace thinwire::lab {

struct WireTimes {
  double alpha = 0;  // seconds per message
  double beta = 0;   // seconds per value of 32 bits
};

inline double DenseSeconds(const WireTimes& wire, uint32_t workers, double values) {
  const double rounds = 2 * (workers - 1.0);
  return rounds * wire.alpha + rounds / workers * values * wire.beta;
}

// REQUIRES: WORKERS is a power of two, here and below.
inline double TopKSeconds(const WireTimes& wire, uint32_t workers, double selected) {
  const double rounds = std::countr_zero(workers);
  return rounds * wire.alpha + 2 * (workers - 1.0) * selected * wire.beta;
}

inline double GtopkSeconds(const WireTimes& wire, uint32_t workers, double selected) {
  const double rounds = std::countr_zero(workers);
  return 2 * rounds * wire.alpha + 4 * selected * rounds * wire.beta;
}

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_EFFICIENCY_EXCHANGE_TIMES_H_
