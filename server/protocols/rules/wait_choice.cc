#include "server/protocols/rules/wait_choice.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/median.h"

namespace thinwire {
namespace {

// The rounds of a replay whose times do not count: at the beginning, no worker is late.
constexpr size_t kFirstRounds = 16;
// A choice replays at most about this number of candidates, so that it takes little time with many
// workers.
constexpr uint32_t kCandidates = 32;

// Returns the number of rounds of a replay. All workers together take about 25,000 steps.
size_t RoundCount(size_t worker_count) {
  return std::clamp<size_t>(25600 / worker_count, 4 * kLargestSlack, 800);
}

// ReplayedSteps are steps of workers that take measured times. A rare event, such as a pause, is
// missing among the times of most workers and too frequent among those of the others. So only the
// median time is a worker's own; the ratios to it are those of all workers, in their measured
// order. Each worker begins with its own ones.
class ReplayedSteps {
 public:
  // The result does not depend on the order of the workers, because they are sorted by their times.
  explicit ReplayedSteps(StepSeconds times) : begun_(times.size()) {
    std::ranges::sort(times);
    for (const std::vector<double>& of_worker : times) {
      const double median = std::max(Median(of_worker), 1e-9);
      workers_.push_back({median, ratios_.size()});
      for (const double seconds : of_worker) ratios_.push_back(seconds / median);
    }
  }

  size_t worker_count() const { return workers_.size(); }
  // WORKER begins its next step at NOW.
  void Begin(size_t worker, double now) {
    const auto [median, first] = workers_[worker];
    const size_t step = begun_[worker]++;
    // When the ratios are used up, they are repeated. Each repetition begins at another ratio, so
    // that the times of the workers meet in new combinations.
    const size_t shift = step / ratios_.size() * (7 * worker + 1);
    ends_.emplace(now + median * ratios_[(first + step + shift) % ratios_.size()], worker);
  }
  // Returns the end of the step that ends first, with its worker. REQUIRES: a worker computes.
  std::pair<double, size_t> EndNext() {
    const std::pair<double, size_t> end = ends_.top();
    ends_.pop();
    return end;
  }

 private:
  using End = std::pair<double, size_t>;
  struct Worker {
    double median;       // seconds
    size_t first_ratio;  // its first own one
  };

  std::vector<double> ratios_;
  std::vector<Worker> workers_;
  std::vector<size_t> begun_;  // the number of begun steps of each worker
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

double Progress(double examples, std::optional<double> noise_scale) {
  return noise_scale.has_value() ? 1 / (1 + *noise_scale / examples) : examples;
}

}  // namespace

MeanStep BackupStep(const StepSeconds& times, uint32_t backup) {
  ReplayedSteps steps(times);
  const size_t quorum = steps.worker_count() - backup;
  const size_t round_count = kFirstRounds + RoundCount(steps.worker_count());
  std::vector<size_t> step(steps.worker_count());
  std::vector<size_t> arrived;  // workers whose pushes the open round has accepted
  for (size_t w = 0; w < steps.worker_count(); ++w) steps.Begin(w, 0);
  double first_time = 0;
  double now = 0;
  size_t push_count = 0;
  for (size_t open = 0; open < round_count;) {
    const auto [time, worker] = steps.EndNext();
    now = time;
    ++push_count;
    if (step[worker] < open) {  // a late worker
      step[worker] = open;
      steps.Begin(worker, now);
      continue;
    }
    arrived.push_back(worker);
    if (arrived.size() < quorum) continue;
    ++open;
    if (open == kFirstRounds) {
      first_time = now;
      push_count = 0;
    }
    for (const size_t w : std::exchange(arrived, {})) {
      step[w] = open;
      steps.Begin(w, now);
    }
  }
  const auto counted = static_cast<double>(round_count - kFirstRounds);
  return {(now - first_time) / counted, static_cast<double>(push_count) / counted};
}

double WaitingPart(const StepSeconds& times, uint64_t slack) {
  struct Wait {
    size_t worker;
    double since;
  };
  ReplayedSteps steps(times);
  const size_t round_count = RoundCount(steps.worker_count());
  std::vector<uint64_t> next(steps.worker_count());
  std::vector<Wait> waits;
  for (size_t w = 0; w < steps.worker_count(); ++w) steps.Begin(w, 0);
  // The fast workers use up the slack in the first half, which does not count.
  double first_time = 0;
  double waited = 0;
  double now = 0;
  uint64_t frontier = 0;
  auto unfinished_count = static_cast<ptrdiff_t>(steps.worker_count());
  while (frontier < round_count) {
    const auto [time, worker] = steps.EndNext();
    now = time;
    waits.push_back({worker, now});
    if (next[worker]++ > frontier || --unfinished_count > 0) {
      if (next[worker] > frontier + slack) continue;
      waits.pop_back();
      steps.Begin(worker, now);
      continue;
    }
    frontier = *std::ranges::min_element(next);
    unfinished_count = std::ranges::count(next, frontier);
    if (frontier < round_count / 2) first_time = now;
    std::erase_if(waits, [&](const Wait& wait) {
      if (next[wait.worker] > frontier + slack) return false;
      waited += now - std::max(wait.since, first_time);
      steps.Begin(wait.worker, now);
      return true;
    });
  }
  for (const Wait& wait : waits) waited += now - std::max(wait.since, first_time);
  const double all = (now - first_time) * static_cast<double>(steps.worker_count());
  return all > 0 ? waited / all : 0;
}

std::optional<WaitChoice> ChooseBackup(const StepSeconds& times, double examples,
                                       std::optional<double> noise_scale, uint32_t current) {
  struct Outlook {
    uint32_t backup = 0;
    double seconds = 0;
    double progress = 0;  // per second
  };
  const auto outlook_of = [&](uint32_t backup) {
    const MeanStep step = BackupStep(times, backup);
    const double seconds = std::max(step.seconds, 1e-9);
    return Outlook{backup, seconds, Progress(step.pushes * examples, noise_scale) / seconds};
  };
  const auto worker_count = static_cast<uint32_t>(times.size());
  const uint32_t stride = 1 + worker_count / 2 / kCandidates;
  std::vector<Outlook> outlooks;
  for (uint32_t backup = 0; backup <= worker_count / 2; backup += stride) {
    outlooks.push_back(outlook_of(backup));
  }
  const double most = std::ranges::max(outlooks, {}, &Outlook::progress).progress;
  const Outlook chosen = *std::ranges::find_if(
      outlooks, [&](const Outlook& outlook) { return outlook.progress >= kNearlyBest * most; });
  const Outlook kept = outlook_of(current);
  const bool stays = current < chosen.backup && kept.progress >= kGoodEnough * most;
  if (stays || chosen.backup == current) return std::nullopt;
  return WaitChoice{
      chosen.backup,
      absl::StrFormat("expected: %.3g s per step, before %.3g s; %.3g times the progress per "
                      "second; noise scale %s",
                      chosen.seconds, kept.seconds, chosen.progress / kept.progress,
                      noise_scale ? absl::StrFormat("%.3g examples", *noise_scale) : "unknown")};
}

std::optional<WaitChoice> ChooseSlack(const StepSeconds& times, uint64_t current) {
  const double limit = WaitingPart(times, kLargestSlack) + kMostExtraWaiting;
  uint64_t slack = 0;
  double part = WaitingPart(times, slack);
  while (slack < kLargestSlack && part > limit) part = WaitingPart(times, ++slack);
  const double kept = WaitingPart(times, current);
  // A smaller slack that is nearly the same is not worth the wait of a change.
  const bool stays = kept <= limit && current < 2 * (slack + 1);
  if (stays || slack == current) return std::nullopt;
  return WaitChoice{slack,
                    absl::StrFormat("expected: %.3g %% waiting, before %.3g %%, at most %.3g %%",
                                    100 * part, 100 * kept, 100 * limit)};
}

}  // namespace thinwire
