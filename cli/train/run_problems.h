// RunProblems shows the errors of a training run as one sentence each, and collects them for the
// report.
#ifndef THINWIRE_CLI_TRAIN_RUN_PROBLEMS_H_
#define THINWIRE_CLI_TRAIN_RUN_PROBLEMS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/terminal/console.h"

namespace thinwire {

// Returns an error message without its details: the lines after the first one, the connection
// attempts that gRPC lists, and the end of a long sentence. The log of the process has the whole
// message.
std::string SentenceOf(const std::string& message);

// Not thread-safe.
class RunProblems {
 public:
  // CONSOLE must outlive the RunProblems.
  explicit RunProblems(Console& console) : console_(console) {}

  void Add(const std::string& problem);
  // Does nothing if STATUS is OK.
  void Add(const absl::Status& status);
  // Adds that the process NAME was lost because of REASON, which it reported. Several workers
  // report the same reason if a cause of all of them ends them, so only the first one is shown.
  void AddReported(const std::string& name, const std::string& reason);

  const std::vector<std::string>& list() const { return list_; }

 private:
  Console& console_;
  std::vector<std::string> list_;
  std::set<std::string> reasons_;  // that were shown
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_RUN_PROBLEMS_H_
