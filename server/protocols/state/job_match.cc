#include "server/protocols/state/job_match.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/job_difference.h"

namespace thinwire {
namespace {

// Adds a message to DIFFERENCES if both hashes are known (not 0) and differ.
void CompareHashes(const char* name, uint64_t expected, uint64_t got,
                   std::vector<std::string>& differences) {
  if (expected == 0 || got == 0 || expected == got) return;
  differences.push_back(absl::StrCat(name, " differs from the job's (expected hash ",
                                     absl::Hex(expected, absl::kZeroPad16), ", got ",
                                     absl::Hex(got, absl::kZeroPad16), ")"));
}

}  // namespace

JobMatch::JobMatch(std::optional<JobConfig> config) : config_(std::move(config)) {}

absl::Status JobMatch::Check(const JoinRequest& request) const {
  std::vector<std::string> differences;
  if (config_.has_value() && request.has_config()) {
    if (auto text = JobDifference(*config_, request.config(), Compared::kAllButTask)) {
      differences.push_back(*std::move(text));
    }
  }
  if (first_.has_value() && request.config().has_task()) {
    if (auto text = JobDifference(first_->config(), request.config(), Compared::kTask)) {
      differences.push_back(*std::move(text));
    }
    CompareHashes("the content of the data", first_->data_hash(), request.data_hash(), differences);
    CompareHashes("the content of task.model_file", first_->model_file_hash(),
                  request.model_file_hash(), differences);
  }
  CompareHashes("the content of the first values", initial_hash_, request.initial_hash(),
                differences);
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("worker ", request.worker(), ": ", absl::StrJoin(differences, "; ")));
}

void JobMatch::Keep(const JoinRequest& request) {
  if (initial_hash_ == 0) initial_hash_ = request.initial_hash();
  if (first_.has_value() || !request.config().has_task()) return;
  first_.emplace();
  *first_->mutable_config() = request.config();
  first_->set_data_hash(request.data_hash());
  first_->set_model_file_hash(request.model_file_hash());
}

}  // namespace thinwire
