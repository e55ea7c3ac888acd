// DensityWarmup: how a run's density begins and falls (Lin et al. 2018, section 3.3). What a run
// learns in its first steps moves far more than a thousandth of the values.
//
//   density(t) = first^(1 - p) * last^p,  p = min(1, t / part),  t = the part of the run that is
//   over
//
// It changes by the same factor in every step, and comes out alike on every machine. Immutable.
#ifndef THINWIRE_COMMON_DENSITY_WARMUP_H_
#define THINWIRE_COMMON_DENSITY_WARMUP_H_

namespace thinwire {

struct DensityWarmup {
  double part = 0;     // of the run, 0 to 1; 0: none
  double first = 0.1;  // the density at the start, in (0, 1]

  // The density at PROGRESS, 0 to 1, of a run that goes on with LAST, in (0, 1].
  double At(double progress, double last) const;

  bool operator==(const DensityWarmup&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_DENSITY_WARMUP_H_
