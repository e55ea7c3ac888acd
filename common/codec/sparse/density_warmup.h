// DensityWarmup: starts a run with a higher density of sparse gradients and lowers it (Lin et al.
// 2018, section 3.3). In the first steps of a run, a low density would drop most of the gradient.
//
//   density(t) = first^(1 - p) * last^p,  p = min(1, t / part),  t = the completed part of the run
//
// The density decreases by a constant factor per step. At() returns the same bits on every machine.
// A value type.
#ifndef THINWIRE_COMMON_CODEC_SPARSE_DENSITY_WARMUP_H_
#define THINWIRE_COMMON_CODEC_SPARSE_DENSITY_WARMUP_H_

namespace thinwire {

struct DensityWarmup {
  double part = 0;     // the length of the warm-up as a part of the run, 0 to 1; 0: no warm-up
  double first = 0.1;  // the density at the start, in (0, 1]

  // Returns the density at the point PROGRESS of the run: 0 is its start, 1 its end. LAST, in
  // (0, 1], is the density after the warm-up.
  double At(double progress, double last) const;

  bool operator==(const DensityWarmup&) const = default;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPARSE_DENSITY_WARMUP_H_
