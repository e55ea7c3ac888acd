#include "experiments/cluster/adaptive_run.h"

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/encode/push_schedule.h"
#include "common/spec/push_spec.h"
#include "common/status_macros.h"
#include "experiments/cluster/fastest_codecs.h"
#include "experiments/cluster/run_record.h"
#include "server/edge/lead/precision_choice.h"

namespace thinwire::lab {
namespace {

// With adaptive_prune, an arm is removed if its encoding error is larger.
constexpr double kLargestError = 1;

// Returns the push codec of each shard with ARM.
std::vector<CodecSpec> CodecsOf(const AdaptiveSpec::Arm& arm, const LabCluster& cluster) {
  if (arm.fastest) return FastestCodecs(cluster.spec(), cluster.partition());
  return client::ShardSpecs(arm.codec, cluster.partition());
}

// A finished trial.
struct FinishedTrial {
  std::unique_ptr<RunRecord> record;
  ClusterState end;
  Trial trial;
  double encoding_error = 0;
};

class AdaptiveRun {
 public:
  AdaptiveRun(LabCluster& cluster, const RunControl& control)
      : cluster_(cluster),
        control_(control),
        spec_(*cluster.spec().job.push.adaptive),
        record_(cluster.MakeRecord(cluster.examples(), cluster.spec().tests)),
        removed_(spec_.arms.size()) {}

  absl::StatusOr<RunResult> Run();

 private:
  // Tries the arms from the current state, chooses one and takes over its state. NEXT is the step
  // of the next decision.
  absl::Status Decide(Step next);
  // Runs a trial. If START is not null, sets it to the test of the state before the trial.
  absl::StatusOr<FinishedTrial> Try(size_t arm, std::future<absl::StatusOr<TestResult>>* start);
  // Removes arms with a large error, unless no arm would remain.
  void Prune(const std::vector<std::optional<FinishedTrial>>& trials);
  bool GoOn() const { return control_.progress == nullptr || control_.progress(record_->done()); }
  Step step() const { return state_.has_value() ? state_->step : Step{0}; }
  const ClusterState* state() const { return state_.has_value() ? &*state_ : nullptr; }

  LabCluster& cluster_;
  const RunControl& control_;
  const AdaptiveSpec& spec_;
  const std::unique_ptr<RunRecord> record_;
  std::vector<bool> removed_;          // by arm
  std::optional<ClusterState> state_;  // nullopt: the initial state
  std::optional<size_t> current_;      // the arm since the last decision
  std::vector<PrecisionDecision> decisions_;
};

absl::StatusOr<RunResult> AdaptiveRun::Run() {
  const Step end = cluster_.end();
  while (true) {
    const Step next = NextDecision(spec_, step(), end);
    if (TrialsBeginAt(spec_, step(), end)) RETURN_IF_ERROR(Decide(next));
    RETURN_IF_ERROR(cluster_.Begin({.begin = state(),
                                    .end = next,
                                    .codecs = CodecsOf(spec_.arms[current_.value_or(0)], cluster_)},
                                   *record_));
    RETURN_IF_ERROR(cluster_.Run([this] { return GoOn(); }));
    if (next == end) break;
    ASSIGN_OR_RETURN(state_, cluster_.Save());
  }
  ASSIGN_OR_RETURN(RunResult result, record_->Finish());
  result.mutable_decision()->Assign(decisions_.begin(), decisions_.end());
  return result;
}

absl::StatusOr<FinishedTrial> AdaptiveRun::Try(size_t arm,
                                               std::future<absl::StatusOr<TestResult>>* start) {
  const uint64_t steps = spec_.speculate_steps;
  const uint64_t examples = cluster_.examples() * steps / cluster_.end().value;
  FinishedTrial tried{.record = cluster_.MakeRecord(examples, kTestsPerTrial)};
  const absl::Duration begin = cluster_.now();
  RETURN_IF_ERROR(cluster_.Begin({.begin = state(),
                                  .end = step() + steps,
                                  .codecs = CodecsOf(spec_.arms[arm], cluster_),
                                  .measures_error = true},
                                 *tried.record));
  if (start != nullptr) *start = tried.record->Test();
  RETURN_IF_ERROR(cluster_.Run([this] { return GoOn(); }));
  // Steps may take no time. The largest gain then decides.
  tried.trial.seconds_per_step =
      std::max(1e-9, absl::ToDoubleSeconds(cluster_.now() - begin) / static_cast<double>(steps));
  ASSIGN_OR_RETURN(const RunResult result, tried.record->Finish());
  for (const RunResult::Point& point : result.point()) {
    // In mode sync, every step makes one update.
    tried.trial.curve.push_back(
        {.x = static_cast<double>(point.updates()), .y = point.test_accuracy()});
  }
  const EncodingError error = cluster_.encoding_error();
  tried.encoding_error = error.values > 0 ? error.errors / error.values : 0;
  ASSIGN_OR_RETURN(tried.end, cluster_.Save());
  record_->AddTrial(*tried.record);
  return tried;
}

void AdaptiveRun::Prune(const std::vector<std::optional<FinishedTrial>>& trials) {
  std::vector<bool> removed = removed_;
  for (size_t arm = 0; arm < trials.size(); ++arm) {
    if (trials[arm].has_value() && !(trials[arm]->encoding_error <= kLargestError)) {
      removed[arm] = true;
    }
  }
  if (std::ranges::count(removed, false) > 0) removed_ = std::move(removed);
}

absl::Status AdaptiveRun::Decide(Step next) {
  const double seconds = absl::ToDoubleSeconds(cluster_.now());
  std::future<absl::StatusOr<TestResult>> start;
  std::vector<std::optional<FinishedTrial>> tried(spec_.arms.size());
  for (size_t arm = 0; arm < tried.size(); ++arm) {
    if (removed_[arm]) continue;
    ASSIGN_OR_RETURN(tried[arm], Try(arm, start.valid() ? nullptr : &start));
  }
  ASSIGN_OR_RETURN(const TestResult test, start.get());
  // Only the first trials of the arms begin without residuals of other codecs.
  if (spec_.prune && !current_.has_value()) Prune(tried);

  std::vector<ArmTrial> trials;
  for (size_t arm = 0; arm < tried.size(); ++arm) {
    if (!tried[arm].has_value()) continue;
    trials.push_back({.arm = arm,
                      .trial = tried[arm]->trial,
                      .encoding_error = tried[arm]->encoding_error,
                      .removed = removed_[arm]});
  }
  PrecisionChoice choice = ChoosePrecision(spec_, trials, step(), test.accuracy, next, current_);
  choice.decision.set_seconds(seconds);
  current_ = choice.arm;
  record_->Adopt(*tried[*current_]->record);
  state_ = std::move(tried[*current_]->end);
  decisions_.push_back(std::move(choice.decision));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunResult> RunAdaptive(LabCluster& cluster, const RunControl& control) {
  return AdaptiveRun(cluster, control).Run();
}

}  // namespace thinwire::lab
