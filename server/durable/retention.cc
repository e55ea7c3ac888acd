#include "server/durable/retention.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "proto/job.pb.h"
#include "server/core/event.h"
#include "server/durable/log_record.h"

namespace thinwire {
namespace {

// Returns the step of the checkpoint of MANIFEST; nullopt: none, because the frontiers differ.
std::optional<Step> StepOf(const CheckpointManifest& manifest) {
  return manifest.has_step() ? std::optional(Step{manifest.step()}) : std::nullopt;
}

// Returns the step that the checkpoint of MANIFEST has completed at all shards; nullopt: there is
// no shard, and the checkpoint is that of no step.
std::optional<Step> CompletedStepOf(const CheckpointManifest& manifest) {
  std::optional<Step> least = StepOf(manifest);
  for (const CheckpointManifest::Shard& shard : manifest.shards()) {
    const Step frontier{shard.frontier()};
    least = std::min(frontier, least.value_or(frontier));
  }
  return least;
}

struct Candidate {
  const ListedCheckpoint* checkpoint = nullptr;
  Step step;
};

// Returns the checkpoints for which STEP_OF returns a step, in ascending order of their steps and
// then in the order of writing. Leaves those out whose generation was rolled back to an earlier
// step.
std::vector<Candidate> ValidCheckpoints(const std::vector<ListedCheckpoint>& checkpoints,
                                        std::optional<Step> (*step_of)(const CheckpointManifest&)) {
  std::vector<Candidate> candidates;
  for (const ListedCheckpoint& checkpoint : checkpoints) {
    if (!checkpoint.manifest.has_value()) continue;
    const std::optional<Step> step = step_of(*checkpoint.manifest);
    if (step.has_value()) candidates.push_back({&checkpoint, *step});
  }
  // In the order of writing within a generation.
  std::ranges::stable_sort(candidates, {}, [](const Candidate& candidate) {
    return candidate.checkpoint->manifest->generation();
  });
  std::vector<Candidate> valid;
  for (const Candidate& candidate : candidates) {
    // A later checkpoint of a smaller step means that the servers went back to this step.
    while (!valid.empty() && valid.back().step > candidate.step) valid.pop_back();
    valid.push_back(candidate);
  }
  return valid;
}

// Returns the newest of the checkpoints of each step.
std::vector<AlignedCheckpoint> NewestOfEachStep(const std::vector<Candidate>& candidates) {
  std::vector<AlignedCheckpoint> newest;
  for (const Candidate& candidate : candidates) {
    if (!newest.empty() && newest.back().step == candidate.step) newest.pop_back();
    newest.push_back({candidate.step, candidate.checkpoint->name});
  }
  return newest;
}

// Adds the names of those of CHECKPOINTS that have one of STEPS to NAMES.
void AddNames(const std::vector<AlignedCheckpoint>& checkpoints, const std::vector<Step>& steps,
              std::set<std::string>& names) {
  for (const AlignedCheckpoint& checkpoint : checkpoints) {
    if (std::ranges::count(steps, checkpoint.step) > 0) names.insert(checkpoint.name);
  }
}

// Returns the names of the checkpoints that are kept because of their steps or their tests.
std::set<std::string> ChosenNames(const std::vector<ListedCheckpoint>& checkpoints,
                                  const KeptCheckpoints& kept) {
  std::set<std::string> names;
  AddNames(AlignedCheckpoints(checkpoints), kept.steps, names);
  const std::vector<AlignedCheckpoint> completed =
      NewestOfEachStep(ValidCheckpoints(checkpoints, CompletedStepOf));
  std::vector<Step> steps;
  for (const AlignedCheckpoint& checkpoint : completed) steps.push_back(checkpoint.step);
  AddNames(completed, FirstSteps(steps, kept.retention.every), names);
  const std::vector<TestedCheckpoint> tested = TestedCheckpoints(checkpoints);
  for (const TestedCheckpoint& best : tested | std::views::take(kept.retention.best_count)) {
    names.insert(best.name);
  }
  return names;
}

// Returns the mode with which a server continues from the checkpoint of MANIFEST; "" if it has no
// shard.
std::string ModeOf(const CheckpointManifest& manifest) {
  if (manifest.shards().empty()) return "";
  const CheckpointManifest::Shard& shard = manifest.shards(0);
  if (!shard.has_rule() && !shard.has_next_rule()) {
    return Consistency::Mode::Value_Name(manifest.join().config().consistency().mode());
  }
  const auto& rule = shard.has_next_rule() ? shard.next_rule() : shard.rule();
  return std::string(RuleOf(rule, /*max_workers=*/rule.workers()).rule.mode());
}

// Returns the name of the newest checkpoint whose mode is not that of the last one, or an empty
// string.
std::string BeforeChangeOfMode(const std::vector<ListedCheckpoint>& checkpoints) {
  std::optional<std::string> newest;
  for (const ListedCheckpoint& checkpoint : checkpoints | std::views::reverse) {
    if (!checkpoint.manifest.has_value()) continue;
    const std::string mode = ModeOf(*checkpoint.manifest);
    if (!newest.has_value()) newest = mode;
    if (mode != *newest) return checkpoint.name;
  }
  return "";
}

}  // namespace

std::vector<AlignedCheckpoint> AlignedCheckpoints(
    const std::vector<ListedCheckpoint>& checkpoints) {
  return NewestOfEachStep(ValidCheckpoints(checkpoints, StepOf));
}

std::vector<TestedCheckpoint> TestedCheckpoints(const std::vector<ListedCheckpoint>& checkpoints) {
  std::vector<TestedCheckpoint> tested;
  for (const Candidate& candidate : ValidCheckpoints(checkpoints, CompletedStepOf)) {
    const CheckpointManifest& manifest = *candidate.checkpoint->manifest;
    const std::optional<TestResult> test = TestResultOf(manifest.test());
    if (!test.has_value()) continue;
    // A rollback writes the checkpoint to which the servers go back again.
    std::erase_if(tested, [&](const TestedCheckpoint& other) { return other.test == *test; });
    tested.push_back({.test = *test, .name = candidate.checkpoint->name, .step = StepOf(manifest)});
  }
  std::ranges::stable_sort(tested, [](const TestedCheckpoint& a, const TestedCheckpoint& b) {
    return a.test.IsBetterThan(b.test);
  });
  return tested;
}

std::vector<Step> FirstSteps(const std::vector<Step>& steps, uint64_t every) {
  std::vector<Step> first;
  if (every == 0) return first;
  uint64_t last = 0;  // the number of the multiple before the last returned step
  for (const Step step : steps) {
    if (step.value / every == last) continue;
    last = step.value / every;
    first.push_back(step);
  }
  return first;
}

std::vector<Step> BestSteps(const std::vector<TestedCheckpoint>& tested,
                            const std::vector<Step>& steps, size_t count) {
  std::vector<Step> best;
  for (const TestedCheckpoint& checkpoint : tested) {
    if (best.size() == count) break;
    if (!checkpoint.step.has_value() || std::ranges::count(steps, *checkpoint.step) == 0) continue;
    best.push_back(*checkpoint.step);
  }
  return best;
}

std::set<std::string> NamesToKeep(const std::vector<ListedCheckpoint>& checkpoints,
                                  const KeptCheckpoints& kept) {
  const std::set<std::string> chosen = ChosenNames(checkpoints, kept);
  const std::string before_change = BeforeChangeOfMode(checkpoints);
  std::set<std::string> names;
  bool found_healthy = false;
  for (const ListedCheckpoint& checkpoint : checkpoints | std::views::reverse) {
    const bool is_newest_healthy =
        !found_healthy && checkpoint.manifest.has_value() && checkpoint.manifest->healthy();
    if (names.size() < kept.retention.newest_count || is_newest_healthy ||
        chosen.contains(checkpoint.name) || checkpoint.name == before_change) {
      names.insert(checkpoint.name);
    }
    found_healthy |= is_newest_healthy;
  }
  return names;
}

}  // namespace thinwire
