#include "cli/train/restarts.h"

#include <algorithm>
#include <utility>

#include "common/base/exit_code.h"

namespace thinwire {

bool Restarts::Plan(const ProcessEvent& exit, absl::Time now) {
  if (started_count_ + planned_.size() >= limit_) return false;
  const absl::Duration delay = started_.contains(exit.name) ? delay_ : absl::ZeroDuration();
  planned_[exit.name] = {now + delay, exit};
  return true;
}

std::vector<ProcessEvent> Restarts::TakeDue(absl::Time now) {
  std::vector<ProcessEvent> due;
  std::erase_if(planned_, [&](auto& entry) {
    if (now < entry.second.due) return false;
    due.push_back(std::move(entry.second.exit));
    return true;
  });
  return due;
}

void Restarts::SetStarted(const std::string& name) {
  started_.insert(name);
  ++started_count_;
}

absl::Time Restarts::next() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, planned] : planned_) next = std::min(next, planned.due);
  return next;
}

bool HadWrongSettings(const ExitStatus& exit) {
  return exit.code == static_cast<int>(ExitCode::kUsage) ||
         exit.code == static_cast<int>(ExitCode::kConfig);
}

bool EndedInOrder(const ExitStatus& exit) {
  return exit.ok() || exit.code == static_cast<int>(ExitCode::kDiverged) ||
         exit.code == static_cast<int>(ExitCode::kPreempted);
}

}  // namespace thinwire
