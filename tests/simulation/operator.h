// Operator changes the mode of a simulated job once or twice while faults are on, as `thinwire mode`
// does: it calls SetMode of the lead. Only some jobs have an operator.
//
//   the lead confirms the change                      the rule must stay, also after recoveries
//   the lead refuses it for ever (InvalidArgument)    the earlier rule must stay
//   another error                                     as above; the operator calls again later
//   no reply, for example because the lead ended      either rule may stay
//   the disk of the lead has failed (Unknown)         as above
//
// Not thread-safe.
#ifndef THINWIRE_TESTS_SIMULATION_OPERATOR_H_
#define THINWIRE_TESTS_SIMULATION_OPERATOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/spec/rule.h"
#include "proto/control.pb.h"
#include "server/core/testing/random_events.h"
#include "tests/simulation/job.h"
#include "tests/simulation/server.h"

namespace thinwire::simulation {

class Operator {
 public:
  // JOB must outlive this object. TRACE: one line per event; null: no trace.
  Operator(const Job& job, uint64_t seed, std::function<void(const std::string&)> trace);
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  // LEAD: the process of server 0, or null if it does not run. MAY_CALL: the operator may make a
  // new call.
  void Tick(uint64_t now, Server* lead, bool may_call);
  // Returns whether a call has no reply yet.
  bool waits() const { return called_at_.has_value(); }
  // Returns the rule that all shards must follow at last, or nullopt if the operator does not know.
  const std::optional<Rule>& confirmed() const { return confirmed_; }
  // Returns whether the lead has confirmed the last call, or there was no call: the shards have
  // that rule now.
  bool succeeded() const { return succeeded_; }

 private:
  void Call(Server& lead);
  void OnReply(const Rule& rule, const absl::Status& status);
  SetModeRequest DrawRequest();

  const Job& job_;
  SeededRandom random_;
  const std::function<void(const std::string&)> trace_;
  uint64_t changes_left_ = 0;
  uint64_t now_ = 0;
  uint64_t next_call_ = 0;             // the tick of the next call
  std::optional<uint64_t> called_at_;  // the tick of the call that waits for its reply
  uint64_t call_ = 0;                  // its number
  std::optional<Rule> confirmed_;
  bool succeeded_ = true;
};

}  // namespace thinwire::simulation

#endif  // THINWIRE_TESTS_SIMULATION_OPERATOR_H_
