// DensityWarmup: starts a run with a higher density and lowers it (Lin et al. 2018, section 3.3).
// The first steps of a run change far more than a thousandth of the values.
//
//   density(t) = first^(1 - p) * last^p,  p = min(1, t / part),  t = the completed part of the run
//
// The density falls by the same factor at every step, and has the same bits on every machine. A
// value type.
#ifndef THINWIRE_COMMON_DENSITY_WARMUP_H_
#define THINWIRE_COMMON_DENSITY_WARMUP_H_

namespace thinwire {

struct DensityWarmup {
  double part = 0;     // of the run, 0 to 1; 0: no warm-up
  double first = 0.1;  // the density at the start, in (0, 1]

  // Returns the density at PROGRESS, 0 to 1, of a run whose density after the warm-up is LAST, in
  // (0, 1].
  double At(double progress, double last) const;

  bool operator==(const DensityWarmup&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_DENSITY_WARMUP_H_
