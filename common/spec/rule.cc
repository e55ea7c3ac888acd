#include "common/spec/rule.h"

namespace thinwire {
namespace {

// The largest accepted number of workers. A server stores a row per worker and shard, so a larger
// number would take much memory, and is most likely a mistake in the job file.
constexpr uint32_t kMaxWorkers = 65536;

}  // namespace

std::string_view Rule::mode() const {
  if (fold == Fold::kPush) return slack == kUnboundedSlack ? "async" : "ssp";
  return quorum < workers ? "backup" : "sync";
}

Problems Rule::Validate() const {
  Problems problems;
  problems.RequireInteger("workers", workers, 1, kMaxWorkers);
  if (problems.empty()) {
    problems.RequireInteger("max_workers", max_workers, workers, kMaxWorkers);
  }
  if (fold == Fold::kPush) {
    problems.RequireInteger("fold_every", fold_every, 1);
  } else if (workers > 0) {
    problems.Require(quorum >= 1 && quorum <= workers, "backup",
                     absl::StrCat("below ", workers, ", the value of workers"), workers - quorum);
  }
  problems.RequireInteger("in_flight", in_flight, 0, fold == Fold::kPush ? kMostInFlight : 1);
  return problems;
}

std::ostream& operator<<(std::ostream& out, const Rule& rule) {
  if (rule.in_flight > 0) {
    Rule plain = rule;
    plain.in_flight = 0;
    return out << plain << ", " << rule.in_flight << " in flight";
  }
  if (rule.fold == Fold::kPush) {
    if (rule.slack == kUnboundedSlack) {
      out << "async";
    } else {
      out << "ssp(" << rule.slack << ")";
    }
    return out << " of " << rule.workers << ", fold_every " << rule.fold_every;
  }
  if (rule.quorum < rule.workers) {
    return out << "backup " << rule.quorum << "+" << rule.workers - rule.quorum;
  }
  return out << "sync of " << rule.workers << (rule.ordered_fold ? ", ordered" : "");
}

}  // namespace thinwire
