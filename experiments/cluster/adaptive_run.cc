#include "experiments/cluster/adaptive_run.h"

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/encode/push_schedule.h"
#include "common/spec/push_spec.h"
#include "common/status_macros.h"
#include "common/tensor_kind.h"
#include "experiments/cluster/fastest_codecs.h"
#include "experiments/cluster/run_recorder.h"
#include "server/edge/lead/precision_choice.h"

namespace thinwire::lab {
namespace {

// Returns the push codec of each shard with the arms CHOSEN.
std::vector<CodecSpec> CodecsOf(const KindArms& chosen, const LabCluster& cluster) {
  const auto specs =
      client::ShardSpecs(cluster.spec().job.push.adaptive->arms, chosen, cluster.partition());
  std::vector<CodecSpec> codecs = FastestCodecs(cluster.spec(), cluster.partition());
  for (size_t s = 0; s < codecs.size(); ++s) {
    if (specs[s].has_value()) codecs[s] = *specs[s];
  }
  return codecs;
}

// A finished trial.
struct FinishedTrial {
  std::unique_ptr<RunRecorder> record;
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
        alone_(KindsChosenAlone(spec_, cluster.partition())),
        record_(cluster.MakeRecord(cluster.examples(), cluster.spec().tests)),
        removed_(spec_.arms.size()) {}

  absl::StatusOr<RunResult> Run();

 private:
  // Tries the arms from the current state, chooses one and takes over its state. NEXT is the step
  // of the next decision.
  absl::Status Decide(Step next);
  // Runs a trial. If START is not null, sets it to the test of the state before the trial.
  absl::StatusOr<FinishedTrial> Try(const KindArms& arms,
                                    std::future<absl::StatusOr<TestResult>>* start);
  bool GoOn() const { return control_.progress == nullptr || control_.progress(record_->done()); }
  Step step() const { return state_.has_value() ? state_->step : Step{0}; }
  const ClusterState* state() const { return state_.has_value() ? &*state_ : nullptr; }

  LabCluster& cluster_;
  const RunControl& control_;
  const AdaptiveSpec& spec_;
  const std::vector<TensorKind> alone_;  // KindsChosenAlone
  const std::unique_ptr<RunRecorder> record_;
  std::vector<bool> removed_;          // by arm
  std::optional<ClusterState> state_;  // nullopt: the initial state
  KindArms chosen_ = {};               // since the last decision
  std::vector<PrecisionDecision> decisions_;
};

absl::StatusOr<RunResult> AdaptiveRun::Run() {
  const Step end = cluster_.end();
  while (true) {
    const Step next = NextDecision(spec_, step(), end);
    if (TrialsBeginAt(spec_, step(), end)) RETURN_IF_ERROR(Decide(next));
    RETURN_IF_ERROR(cluster_.Begin(
        {.begin = state(), .end = next, .codecs = CodecsOf(chosen_, cluster_)}, *record_));
    RETURN_IF_ERROR(cluster_.Run([this] { return GoOn(); }));
    if (next == end) break;
    ASSIGN_OR_RETURN(state_, cluster_.Save());
  }
  ASSIGN_OR_RETURN(RunResult result, record_->Finish());
  result.mutable_decision()->Assign(decisions_.begin(), decisions_.end());
  return result;
}

absl::StatusOr<FinishedTrial> AdaptiveRun::Try(const KindArms& arms,
                                               std::future<absl::StatusOr<TestResult>>* start) {
  const uint64_t steps = spec_.speculate_steps;
  const uint64_t examples = cluster_.examples() * steps / cluster_.end().value;
  FinishedTrial tried{.record = cluster_.MakeRecord(examples, kTestsPerTrial)};
  const absl::Duration begin = cluster_.now();
  RETURN_IF_ERROR(cluster_.Begin(
      {.begin = state(),
       .end = step() + steps,
       .codecs = CodecsOf(arms, cluster_),
       .measured_from = step() + StepsBeforePart(steps, kTestsPerTrial - kMeasuredParts)},
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
  tried.encoding_error = cluster_.encoding_error().ratio();
  ASSIGN_OR_RETURN(tried.end, cluster_.Save());
  record_->AddTrial(*tried.record);
  return tried;
}

absl::Status AdaptiveRun::Decide(Step next) {
  const double seconds = absl::ToDoubleSeconds(cluster_.now());
  const std::optional<TensorKind> kind = ChosenKind(alone_, decisions_.size());
  std::future<absl::StatusOr<TestResult>> start;
  std::vector<FinishedTrial> tried(spec_.arms.size());
  std::vector<ArmTrial> trials;
  for (uint32_t arm = 0; arm < tried.size(); ++arm) {
    if (removed_[arm]) continue;
    ASSIGN_OR_RETURN(tried[arm],
                     Try(WithArm(chosen_, kind, arm), start.valid() ? nullptr : &start));
    trials.push_back(
        {.arm = arm, .trial = tried[arm].trial, .encoding_error = tried[arm].encoding_error});
  }
  ASSIGN_OR_RETURN(const TestResult test, start.get());
  std::optional<size_t> current;
  if (!decisions_.empty()) {
    current = chosen_[static_cast<size_t>(kind.value_or(TensorKind::kMatrices))];
  } else if (spec_.prune) {
    // Only the first trials begin without residuals of other codecs.
    Prune(trials);
    for (const ArmTrial& trial : trials) removed_[trial.arm] = trial.removed;
  }
  PrecisionChoice choice = ChoosePrecision(spec_, trials, step(), test.accuracy, next, current);
  choice.decision.set_seconds(seconds);
  if (kind.has_value()) choice.decision.set_layers(std::string(TensorKindName(*kind)));
  chosen_ = WithArm(chosen_, kind, static_cast<uint32_t>(choice.arm));
  record_->Adopt(*tried[choice.arm].record);
  state_ = std::move(tried[choice.arm].end);
  decisions_.push_back(std::move(choice.decision));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunResult> RunAdaptive(LabCluster& cluster, const RunControl& control) {
  return AdaptiveRun(cluster, control).Run();
}

}  // namespace thinwire::lab
