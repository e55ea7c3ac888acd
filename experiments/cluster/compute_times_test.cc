#include "experiments/cluster/compute_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

namespace thinwire::lab {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSeed = 7;
constexpr uint32_t kWorkers = 20;
constexpr uint64_t kSteps = 10'000;

ComputeTimes Times(const ComputeTime& spec, uint64_t seed = kSeed) {
  absl::StatusOr<ComputeTimes> times = ComputeTimes::Make(spec, "", seed);
  EXPECT_TRUE(times.ok()) << times.status();
  return *std::move(times);
}

double Seconds(const ComputeTimes& times, uint32_t worker, uint64_t step, double begin = 0) {
  return absl::ToDoubleSeconds(times.Of(WorkerId{worker}, step, absl::Seconds(begin)));
}

struct Moments {
  double mean = 0;
  double variance = 0;
  double smallest = INFINITY;
};

// Returns the moments of 200,000 draws.
Moments MomentsOf(const ComputeTimes& times) {
  Moments moments;
  double squares = 0;
  for (uint32_t worker = 0; worker < kWorkers; ++worker) {
    for (uint64_t step = 0; step < kSteps; ++step) {
      const double seconds = Seconds(times, worker, step);
      moments.mean += seconds;
      squares += seconds * seconds;
      moments.smallest = std::min(moments.smallest, seconds);
    }
  }
  moments.mean /= kWorkers * kSteps;
  moments.variance = squares / (kWorkers * kSteps) - moments.mean * moments.mean;
  return moments;
}

TEST(ComputeTimesTest, AConstantTimeIsTheMean) {
  ComputeTime spec;
  spec.set_mean_seconds(0.25);
  const ComputeTimes times = Times(spec);
  EXPECT_EQ(Seconds(times, 3, 4, 5), 0.25);
}

// The mean of 200,000 draws deviates by more than 5 / sqrt(200,000) = 1.1 % of the standard
// deviation with a probability below 1e-6.
TEST(ComputeTimesTest, ExponentialTimesHaveTheirMomentsAboveTheMinimum) {
  ComputeTime spec;
  spec.set_distribution(ComputeTime::Distribution::exponential);
  spec.set_mean_seconds(0.3);
  spec.set_minimum_seconds(0.1);
  const Moments moments = MomentsOf(Times(spec));
  EXPECT_NEAR(moments.mean, 0.3, 0.2 * 0.011);
  EXPECT_NEAR(moments.variance, 0.04, 0.04 * 0.04);
  EXPECT_GE(moments.smallest, 0.1);
  EXPECT_LT(moments.smallest, 0.1001);
}

TEST(ComputeTimesTest, LogNormalTimesHaveTheirMoments) {
  ComputeTime spec;
  spec.set_distribution(ComputeTime::Distribution::lognormal);
  spec.set_mean_seconds(2);
  spec.set_sigma(0.5);
  const Moments moments = MomentsOf(Times(spec));
  const double variance = 4 * (std::exp(0.25) - 1);
  EXPECT_NEAR(moments.mean, 2, 0.011 * std::sqrt(variance));
  EXPECT_NEAR(moments.variance, variance, 0.04 * variance);
}

TEST(ComputeTimesTest, TimesDependOnlyOnTheSeedTheWorkerAndTheStep) {
  ComputeTime spec;
  spec.set_distribution(ComputeTime::Distribution::exponential);
  spec.set_pause_every_seconds(10);
  spec.set_pause_seconds(1);
  const ComputeTimes times = Times(spec);
  const double first = Seconds(times, 1, 2, 50);
  Seconds(times, 1, 3, 60);
  EXPECT_EQ(Seconds(times, 1, 2, 50), first);
  EXPECT_EQ(Seconds(Times(spec), 1, 2, 50), first);
  EXPECT_NE(Seconds(times, 2, 2, 50), first);
  EXPECT_NE(Seconds(times, 1, 3, 50), first);
  EXPECT_NE(Seconds(Times(spec, kSeed + 1), 1, 2, 50), first);
}

TEST(ComputeTimesTest, TheFirstWorkersAreSlow) {
  ComputeTime spec;
  spec.set_slow_workers(2);
  spec.set_slow_factor(3);
  const ComputeTimes times = Times(spec);
  EXPECT_EQ(Seconds(times, 0, 9), 0.3);
  EXPECT_EQ(Seconds(times, 1, 9), 0.3);
  EXPECT_EQ(Seconds(times, 2, 9), 0.1);
}

// A worker that computes without end is paused for a part of the time. A pause begins after an
// exponential time of mean 10 s, and lasts for 1 s; one that begins during another extends it,
// which makes the mean pause 10 (exp(0.1) - 1) s (the busy period of the M/D/infinity queue).
TEST(ComputeTimesTest, PausesDelayTheComputationAsOftenAsStated) {
  ComputeTime spec;
  spec.set_mean_seconds(0.5);
  spec.set_pause_every_seconds(10);
  spec.set_pause_seconds(1);
  const ComputeTimes times = Times(spec);
  double end = 0;
  int delayed = 0;
  double longest = 0;
  for (uint64_t step = 0; step < 100'000; ++step) {
    const double seconds = Seconds(times, 0, step, end);
    end += seconds;
    delayed += seconds > 0.5 ? 1 : 0;
    longest = std::max(longest, seconds);
  }
  EXPECT_NEAR(end, 100'000 * (0.5 + 0.05 * 10 * (std::exp(0.1) - 1)), 0.003 * end);
  EXPECT_NEAR(delayed, 100'000 * (1 - std::exp(-0.05)), 300);
  EXPECT_GT(longest, 2);
}

TEST(ComputeTimesTest, ALongComputationMeetsAllItsPausesAndADivisionChangesNone) {
  ComputeTime spec;
  spec.set_mean_seconds(1000);
  spec.set_pause_every_seconds(10);
  spec.set_pause_seconds(1);
  const double whole = Seconds(Times(spec), 0, 0);
  EXPECT_GT(whole, 1050);
  spec.set_mean_seconds(1);
  const ComputeTimes times = Times(spec);
  double end = 0;
  for (uint64_t step = 0; step < 1000; ++step) end += Seconds(times, 0, step, end);
  EXPECT_NEAR(end, whole, 1e-6);
}

TEST(ComputeTimesTest, AStepThatBeginsDuringAPauseWaitsForItsEnd) {
  ComputeTime spec;
  spec.set_mean_seconds(0.001);
  spec.set_pause_every_seconds(10);
  spec.set_pause_seconds(1);
  const ComputeTimes times = Times(spec);
  int checked = 0;
  for (double begin = 0; begin < 200; begin += 0.01) {
    const double end = begin + Seconds(times, 0, 0, begin);
    if (end - begin < 0.01) continue;
    // A step that begins a little later waits for the same end.
    const double later = begin + 0.25 * (end - begin);
    EXPECT_NEAR(later + Seconds(times, 0, 0, later), end, 0.0011);
    ++checked;
  }
  EXPECT_GT(checked, 1000);
}

class TraceTest : public ::testing::Test {
 protected:
  absl::StatusOr<ComputeTimes> MakeFrom(const std::string& text) {
    std::ofstream(folder_ + "/trace.csv") << text;
    ComputeTime spec;
    spec.set_distribution(ComputeTime::Distribution::trace);
    spec.set_trace("trace.csv");
    return ComputeTimes::Make(spec, folder_, kSeed);
  }
  std::string Error(const std::string& text) {
    return std::string(MakeFrom(text).status().message());
  }

  const std::string folder_ = std::getenv("TEST_TMPDIR");
};

TEST_F(TraceTest, EveryWorkerRepeatsItsTimesInTheOrderOfTheSteps) {
  const auto times = MakeFrom(
      "worker,step,seconds\n"
      "1,5,0.5\n"
      "0,1,0.25\n"
      "0,0,0.125\r\n");
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(Seconds(*times, 0, 0), 0.125);
  EXPECT_EQ(Seconds(*times, 0, 1), 0.25);
  EXPECT_EQ(Seconds(*times, 0, 2), 0.125);
  EXPECT_EQ(Seconds(*times, 1, 7), 0.5);
  EXPECT_EQ(Seconds(*times, 2, 1), 0.25);
}

TEST_F(TraceTest, AStepTakesTheSumOfItsPasses) {
  const auto times = MakeFrom(
      "worker,step,seconds\n"
      "0,0,1\n0,1,2\n0,2,4\n0,3,8\n0,4,16\n0,5,32\n");
  ASSERT_TRUE(times.ok()) << times.status();
  const auto of_step = [&](uint64_t step, uint64_t passes) {
    return absl::ToDoubleSeconds(times->OfStep(WorkerId{0}, Step{step}, 3, passes, {}));
  };
  EXPECT_EQ(of_step(0, 3), 7);
  EXPECT_EQ(of_step(1, 3), 56);
  EXPECT_EQ(of_step(1, 2), 24) << "a step with fewer examples";
}

TEST_F(TraceTest, ABadLineIsNamed) {
  const std::string head = "worker,step,seconds\n";
  EXPECT_THAT(Error("worker,seconds\n"), HasSubstr("trace.csv:1: not a line of a trace"));
  EXPECT_THAT(Error(head + "0,0,1\n0,1\n"), HasSubstr("trace.csv:3: "));
  EXPECT_THAT(Error(head + "0,0,1\n0,1,x\n"), HasSubstr("got \"0,1,x\""));
  EXPECT_THAT(Error(head + "0,0,-1\n"), HasSubstr("expected 0 to 1e+06 seconds"));
  EXPECT_THAT(Error(head + "0,0,nan\n"), HasSubstr("expected 0 to 1e+06 seconds"));
  EXPECT_THAT(Error(head + "-1,0,1\n"), HasSubstr("trace.csv:2: "));
  EXPECT_THAT(Error(head + "4000000000,0,1\n"), HasSubstr("a worker below"));
  EXPECT_THAT(Error(head + "0,0,1\n0,0,1\n"), HasSubstr("one line for each worker and step"));
}

TEST_F(TraceTest, ATraceWithoutTimesOfAWorkerIsRefused) {
  EXPECT_THAT(Error("worker,step,seconds\n"), HasSubstr("empty trace"));
  EXPECT_THAT(Error(""), HasSubstr("empty trace"));
  EXPECT_THAT(Error("worker,step,seconds\n1,0,1\n"), HasSubstr("expected worker 0, got worker 1"));
}

TEST_F(TraceTest, AMissingFileIsNotFound) {
  ComputeTime spec;
  spec.set_distribution(ComputeTime::Distribution::trace);
  spec.set_trace("missing.csv");
  const absl::Status status = ComputeTimes::Make(spec, folder_, kSeed).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/missing.csv"));
}

TEST(ComputeTimesTest, ValuesOutOfRangeAreRefusedByName) {
  const auto error = [](auto set) {
    ComputeTime spec;
    set(spec);
    return std::string(ComputeTimes::Make(spec, "", kSeed).status().message());
  };
  EXPECT_THAT(
      error([](ComputeTime& s) { s.set_mean_seconds(-1); }),
      HasSubstr("machines.compute.mean_seconds: out of range (expected 0 to 1e+06, got -1)"));
  EXPECT_THAT(error([](ComputeTime& s) { s.set_sigma(NAN); }), HasSubstr("sigma"));
  EXPECT_THAT(error([](ComputeTime& s) { s.set_slow_factor(-2); }), HasSubstr("slow_factor"));
  EXPECT_THAT(error([](ComputeTime& s) { s.set_pause_seconds(1); }), HasSubstr("pause_seconds"));
  EXPECT_THAT(error([](ComputeTime& s) { s.set_trace("a"); }), HasSubstr("got constant"));
  EXPECT_THAT(error([](ComputeTime& s) { s.set_distribution(ComputeTime::Distribution::trace); }),
              HasSubstr("machines.compute.trace: missing"));
  EXPECT_THAT(error([](ComputeTime& s) {
                s.set_distribution(ComputeTime::Distribution::exponential);
                s.set_minimum_seconds(1);
              }),
              HasSubstr("machines.compute.minimum_seconds"));
}

}  // namespace
}  // namespace thinwire::lab
