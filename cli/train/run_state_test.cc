#include "cli/train/run_state.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

namespace thinwire {
namespace {

using Phase = RunState::Phase;
using To = RunSignal::To;

constexpr RunSignal kNone = {};
constexpr RunSignal kStopWorkers = {To::kWorkers, SIGTERM};
constexpr RunSignal kKillWorkers = {To::kWorkers, SIGKILL};
constexpr RunSignal kStopAll = {To::kAll, SIGTERM};
constexpr RunSignal kKillAll = {To::kAll, SIGKILL};
constexpr int kNever = -1;

// An event at a second, and the state after it.
struct Step {
  int second;
  std::string event;
  RunSignal signal;
  Phase phase;
  int deadline;
};

struct Story {
  std::string name;
  std::vector<Step> steps;
  int stop_signal = 0;
  bool stops_workers = false;
};

absl::Time At(int second) {
  return second == kNever ? absl::InfiniteFuture() : absl::UnixEpoch() + absl::Seconds(second);
}

RunSignal Give(RunState& state, const std::string& event, absl::Time now) {
  if (event == "tick") return state.Tick(now);
  if (event == "int") return state.StopSignal(SIGINT, now);
  if (event == "term") return state.StopSignal(SIGTERM, now);
  if (event == "hup") return state.StopSignal(SIGHUP, now);
  if (event == "workers ended") return state.StopServers(now);
  if (event == "server lost") {
    state.LoseServer(/*workers_run=*/true, now);
  } else if (event == "server lost, no workers") {
    state.LoseServer(/*workers_run=*/false, now);
  } else if (event == "diverged") {
    state.Diverge(now);
  } else {
    ADD_FAILURE() << "unknown event " << event;
  }
  return kNone;
}

// The workers get 20 s to report a lost server and 40 s to stop, the servers 10 s.
const std::vector<Story> kStories = {
    {"a run that succeeds",
     {{5, "tick", kNone, Phase::kRunning, kNever},
      {6, "workers ended", kStopAll, Phase::kStoppingServers, 16},
      {15, "tick", kNone, Phase::kStoppingServers, 16},
      {16, "tick", kKillAll, Phase::kStoppingServers, kNever},
      {99, "tick", kNone, Phase::kStoppingServers, kNever}}},
    {"workers get their time after a signal",
     {{1, "int", kStopWorkers, Phase::kStopping, 41},
      {40, "tick", kNone, Phase::kStopping, 41},
      {41, "tick", kKillWorkers, Phase::kStopping, kNever},
      {42, "workers ended", kStopAll, Phase::kStoppingServers, 52}},
     SIGINT,
     true},
    {"only a second SIGINT or SIGTERM kills",
     {{1, "hup", kStopWorkers, Phase::kStopping, 41},
      {2, "hup", kNone, Phase::kStopping, 41},
      {3, "term", kKillAll, Phase::kStopping, 41}},
     SIGHUP,
     true},
    {"after a lost server the workers report it",
     {{1, "server lost", kNone, Phase::kReporting, 21},
      {9, "server lost", kNone, Phase::kReporting, 21},
      {20, "tick", kNone, Phase::kReporting, 21},
      {21, "tick", kStopWorkers, Phase::kStopping, 61},
      {61, "tick", kKillWorkers, Phase::kStopping, kNever}}},
    {"a server is lost before the workers start",
     {{1, "server lost, no workers", kNone, Phase::kReporting, kNever},
      {2, "workers ended", kStopAll, Phase::kStoppingServers, 12}}},
    {"after divergence the workers stop at once",
     {{1, "diverged", kNone, Phase::kReporting, 1},
      {1, "tick", kStopWorkers, Phase::kStopping, 41},
      {2, "diverged", kNone, Phase::kStopping, 41}},
     0,
     true},
    {"divergence after a lost server does not shorten the time to report",
     {{1, "server lost", kNone, Phase::kReporting, 21},
      {2, "diverged", kNone, Phase::kReporting, 21}},
     0,
     true},
    {"a signal while the workers stop begins their time again",
     {{1, "diverged", kNone, Phase::kReporting, 1},
      {1, "tick", kStopWorkers, Phase::kStopping, 41},
      {5, "term", kStopWorkers, Phase::kStopping, 45}},
     SIGTERM,
     true},
    {"a signal while the servers stop leaves them their time",
     {{1, "workers ended", kStopAll, Phase::kStoppingServers, 11},
      {5, "term", kStopWorkers, Phase::kStoppingServers, 11},
      {6, "int", kKillAll, Phase::kStoppingServers, 11}},
     SIGTERM,
     true},
};

TEST(RunStateTest, TheSignalsFollowFromTheEvents) {
  int checked = 0;
  for (const Story& story : kStories) {
    SCOPED_TRACE(story.name);
    RunState state(
        {.report = absl::Seconds(20), .workers = absl::Seconds(40), .servers = absl::Seconds(10)});
    EXPECT_FALSE(state.ending());
    for (const Step& step : story.steps) {
      SCOPED_TRACE(step.event + " at " + std::to_string(step.second));
      EXPECT_EQ(Give(state, step.event, At(step.second)), step.signal);
      EXPECT_EQ(state.phase(), step.phase);
      EXPECT_EQ(state.ending(), step.phase != Phase::kRunning);
      EXPECT_EQ(state.deadline(), At(step.deadline));
      ++checked;
    }
    EXPECT_EQ(state.stop_signal(), story.stop_signal);
    EXPECT_EQ(state.stops_workers(), story.stops_workers);
  }
  EXPECT_EQ(checked, 30);
}

}  // namespace
}  // namespace thinwire
