// Trials: the part of a client that serves the trials of codecs with push: adaptive
// (docs/adaptive_precision.md).
#ifndef THINWIRE_CLIENT_PARTS_TRIALS_H_
#define THINWIRE_CLIENT_PARTS_TRIALS_H_

#include <optional>

#include "client/parts/core_thread.h"
#include "common/base/ids.h"
#include "proto/precision.pb.h"

namespace thinwire::client {

class Trials {
 public:
  explicit Trials(CoreThread& thread) : thread_(thread) {}

  // Returns the first step of the trial in which the present generation of the servers began;
  // nullopt: it began without a trial. The trial may have ended since.
  std::optional<Step> first_step() const;
  // Measures the encoding errors of the pushes between two calls. Stop returns the sum of the
  // squares of the errors, divided by that of the encoded values; nullopt if nothing is measured, or
  // if Join has succeeded since Start. REQUIRES: Join has succeeded; no step is begun.
  void StartErrorMeasurement();
  std::optional<double> StopErrorMeasurement();
  // Sends TEST, a test of the model within a trial, to the lead.
  void Report(const PrecisionTest& test);

 private:
  CoreThread& thread_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PARTS_TRIALS_H_
