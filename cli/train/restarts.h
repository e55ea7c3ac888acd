// Restarts: the processes of a training run that have died and are going to be started again. The
// first restart of a process is immediate, and later ones are delayed. All processes of a run share
// a number of restarts.
#ifndef THINWIRE_CLI_TRAIN_RESTARTS_H_
#define THINWIRE_CLI_TRAIN_RESTARTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/process/process_set.h"

namespace thinwire {

// Not thread-safe.
class Restarts {
 public:
  Restarts(uint32_t limit, absl::Duration delay) : limit_(limit), delay_(delay) {}

  // Plans a restart of the process that has ended with EXIT. Returns false if there is none left.
  bool Plan(const ProcessEvent& exit, absl::Time now);
  // Returns and removes the ends of the processes that are due to be started at NOW.
  std::vector<ProcessEvent> TakeDue(absl::Time now);
  // The process NAME was started again, after TakeDue() returned its end.
  void SetStarted(const std::string& name);

  bool plans(const std::string& name) const { return planned_.contains(name); }
  // Returns the time of the next restart; InfiniteFuture if none is planned.
  absl::Time next() const;
  uint32_t started_count() const { return started_count_; }

 private:
  struct Planned {
    absl::Time due;
    ProcessEvent exit;
  };

  const uint32_t limit_;
  const absl::Duration delay_;
  std::map<std::string, Planned> planned_;  // by the name of the process
  std::set<std::string> started_;           // the names of the processes
  uint32_t started_count_ = 0;
};

// Returns whether a new process would end in the same way, because the command line or the
// configuration is wrong.
bool HadWrongSettings(const ExitStatus& exit);

// Returns whether a worker ended in order: it is done, has diverged or was stopped.
bool EndedInOrder(const ExitStatus& exit);

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_RESTARTS_H_
