#include "experiments/cluster/compute_times.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numbers>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/text/problems.h"
#include "kernels/mix_bits.h"

namespace thinwire::lab {
namespace {

using kernels::MixBits;

constexpr double kMostSeconds = 1e6;
constexpr uint32_t kMostWorkers = 1'000'000;  // of a trace

// The random numbers of a step, and those of the pauses of a worker.
enum Purpose : uint64_t { kStep = 1, kPauses = 2 };

// A stream of random numbers that depends on four numbers only.
class Draws {
 public:
  Draws(uint64_t seed, Purpose purpose, uint64_t worker, uint64_t number)
      : key_(MixBits(MixBits(MixBits(MixBits(seed) ^ purpose) ^ worker) ^ number)) {}

  // Returns a number above 0 and below 1.
  double Uniform() { return (static_cast<double>(MixBits(key_ + count_++) >> 12) + 0.5) * 0x1p-52; }
  double Exponential() { return -std::log(Uniform()); }
  // Returns a normal number of mean 0 and variance 1 (Box and Muller 1958).
  double Normal() {
    const double radius = std::sqrt(2 * Exponential());
    return radius * std::cos(2 * std::numbers::pi * Uniform());
  }

 private:
  uint64_t key_;
  uint64_t count_ = 0;
};

Problems Validate(const ComputeTime& spec) {
  Problems problems;
  const auto require = [&](const char* field, double value, double most) {
    problems.Require(value >= 0 && value <= most, absl::StrCat("machines.compute.", field),
                     absl::StrCat("0 to ", most), value);
  };
  const bool exponential = spec.distribution() == ComputeTime::Distribution::exponential;
  const bool trace = spec.distribution() == ComputeTime::Distribution::trace;
  require("mean_seconds", spec.mean_seconds(), kMostSeconds);
  require("minimum_seconds", spec.minimum_seconds(),
          exponential ? spec.mean_seconds() : kMostSeconds);
  require("sigma", spec.sigma(), 5);
  require("slow_factor", spec.slow_factor(), 1e6);
  require("pause_every_seconds", spec.pause_every_seconds(), kMostSeconds);
  // With longer pauses a worker would hardly ever compute.
  require("pause_seconds", spec.pause_seconds(), spec.pause_every_seconds());
  if (trace && spec.trace().empty()) {
    problems.Add("machines.compute.trace",
                 "missing with distribution: trace (expected a file, got none)");
  }
  if (!trace && !spec.trace().empty()) {
    problems.Add("machines.compute.trace",
                 absl::StrCat("only valid with distribution: trace (got ",
                              ComputeTime::Distribution::Value_Name(spec.distribution()), ")"));
  }
  return problems;
}

// Reads the trace at PATH: the times of each worker, in the order of their steps.
absl::StatusOr<std::vector<std::vector<absl::Duration>>> ReadTrace(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(absl::StrCat("machines.compute.trace: cannot open ", path));
  }
  std::map<uint32_t, std::map<uint64_t, absl::Duration>> times;  // by worker and step
  std::string line;
  uint64_t number = 0;
  while (std::getline(file, line)) {
    ++number;
    const auto refuse = [&](absl::string_view expected) {
      return absl::InvalidArgumentError(absl::StrCat(path, ":", number,
                                                     ": not a line of a trace (expected ", expected,
                                                     ", got \"", line.substr(0, 80), "\")"));
    };
    const absl::string_view text = absl::StripSuffix(line, "\r");
    if (number == 1) {
      if (text != "worker,step,seconds") return refuse("worker,step,seconds");
      continue;
    }
    const std::vector<absl::string_view> cells = absl::StrSplit(text, ',');
    uint32_t worker = 0;
    uint64_t step = 0;
    double seconds = 0;
    if (cells.size() != 3 || !absl::SimpleAtoi(cells[0], &worker) ||
        !absl::SimpleAtoi(cells[1], &step) || !absl::SimpleAtod(cells[2], &seconds)) {
      return refuse("three numbers: worker,step,seconds");
    }
    if (worker >= kMostWorkers) return refuse(absl::StrCat("a worker below ", kMostWorkers));
    if (!(seconds >= 0 && seconds <= kMostSeconds)) {
      return refuse(absl::StrCat("0 to ", kMostSeconds, " seconds"));
    }
    if (!times[worker].emplace(step, absl::Seconds(seconds)).second) {
      return refuse("one line for each worker and step");
    }
  }
  if (times.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": empty trace (expected at least one time, got none)"));
  }
  std::vector<std::vector<absl::Duration>> trace;
  for (const auto& [worker, steps] : times) {
    if (worker != trace.size()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": missing worker (expected worker ",
                                                     trace.size(), ", got worker ", worker, ")"));
    }
    trace.emplace_back();
    for (const auto& [step, time] : steps) trace.back().push_back(time);
  }
  return trace;
}

}  // namespace

absl::StatusOr<ComputeTimes> ComputeTimes::Make(const ComputeTime& spec, const std::string& folder,
                                                uint64_t seed) {
  RETURN_IF_ERROR(Validate(spec).ToStatus());
  std::vector<std::vector<absl::Duration>> trace;
  if (spec.distribution() == ComputeTime::Distribution::trace) {
    const bool relative = !folder.empty() && spec.trace()[0] != '/';
    ASSIGN_OR_RETURN(trace,
                     ReadTrace(relative ? absl::StrCat(folder, "/", spec.trace()) : spec.trace()));
  }
  return ComputeTimes(spec, seed, std::move(trace));
}

ComputeTimes::ComputeTimes(const ComputeTime& spec, uint64_t seed,
                           std::vector<std::vector<absl::Duration>> trace)
    : spec_(spec), seed_(seed), trace_(std::move(trace)) {}

absl::Duration ComputeTimes::Of(WorkerId worker, uint64_t pass, absl::Duration begin) const {
  absl::Duration time = Drawn(worker, pass);
  if (worker.value < spec_.slow_workers()) time *= spec_.slow_factor();
  if (spec_.pause_seconds() == 0) return time;
  return time + Paused(worker, begin, time);
}

absl::Duration ComputeTimes::OfStep(WorkerId worker, Step step, uint64_t step_passes,
                                    uint64_t passes, absl::Duration begin) const {
  return OfPasses(worker, step, step_passes, 0, passes, begin);
}

absl::Duration ComputeTimes::OfPasses(WorkerId worker, Step step, uint64_t step_passes,
                                      uint64_t first, uint64_t end, absl::Duration begin) const {
  absl::Duration time;
  for (uint64_t i = first; i < end; ++i) {
    time += Of(worker, step.value * step_passes + i, begin + time);
  }
  return time;
}

absl::Duration ComputeTimes::Drawn(WorkerId worker, uint64_t pass) const {
  Draws draws(seed_, kStep, worker.value, pass);
  const double mean = spec_.mean_seconds();
  const double sigma = spec_.sigma();
  switch (spec_.distribution()) {
    case ComputeTime::Distribution::constant:
      return absl::Seconds(mean);
    case ComputeTime::Distribution::exponential:
      return absl::Seconds(spec_.minimum_seconds() +
                           (mean - spec_.minimum_seconds()) * draws.Exponential());
    case ComputeTime::Distribution::lognormal:
      return absl::Seconds(mean * std::exp(sigma * draws.Normal() - sigma * sigma / 2));
    case ComputeTime::Distribution::trace: {
      const std::vector<absl::Duration>& times = trace_[worker.value % trace_.size()];
      return times[pass % times.size()];
    }
  }
  return absl::ZeroDuration();
}

// The pauses begin as a Poisson process: each window of pause_every_seconds has a
// Poisson-distributed number of them, at uniform times. The window's random numbers depend on its
// number only, so no earlier window is needed.
absl::Duration ComputeTimes::Paused(WorkerId worker, absl::Duration begin,
                                    absl::Duration work) const {
  const double every = spec_.pause_every_seconds();
  const double length = spec_.pause_seconds();
  const double start = absl::ToDoubleSeconds(begin);
  double end = start + absl::ToDoubleSeconds(work);
  double free = start;  // the end of the latest pause, if it is after the start
  double paused = 0;
  // A pause that began before the start may last until after it.
  auto window = static_cast<uint64_t>(std::max(start - length, 0.0) / every);
  for (; static_cast<double>(window) * every < end; ++window) {
    Draws draws(seed_, kPauses, worker.value, window);
    for (double part = draws.Exponential(); part < 1; part += draws.Exponential()) {
      const double pause = (static_cast<double>(window) + part) * every;
      if (pause >= end) break;
      const double added = pause + length - std::max(pause, free);
      if (added <= 0) continue;
      free = pause + length;
      paused += added;
      end += added;
    }
  }
  return absl::Seconds(paused);
}

}  // namespace thinwire::lab
