// Mutant: a rule that a simulated cluster breaks on purpose, so that a test can show that the
// ledgers find it. Everything is broken outside the product: in the files between two processes of a
// server, in the disk, in the calls between servers, or in the worker.
#ifndef THINWIRE_SIM_MUTANT_H_
#define THINWIRE_SIM_MUTANT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "proto/frame.h"
#include "server/durable/testing/faulty_files.h"
#include "server/protocols/peers.h"

namespace thinwire::sim {

enum class Mutant : uint8_t {
  kNone,
  kVerdictNotSaved,        // a checkpoint forgets the verdicts of the last pushes
  kSentBeforeFlush,        // a disk says that the log is flushed, and flushes nothing
  kResidualOfAnotherStep,  // a worker restores its newest residuals whatever their step is
  kRollbackToAnotherStep,  // another server rolls back to its own newest checkpoint
  kSumsOfLeadAlone,        // the sums of other servers do not reach the lead
  kRuleNotPassedOn,        // a lead passes its rule on only when it changes
  kServersNotReminded,     // a lead passes its rule on only when it changes or starts again
  kRuleNotStored,    // a lead that goes on from a checkpoint forgets later changes of the rule
  kOldRuleFollowed,  // a server performs requests of the lead that arrive after newer ones
  kBegunTooEarly,    // a worker takes every answer as one that lets it compute a further step
};

inline constexpr const char* kMutantNames[] = {"none",
                                               "verdict-not-saved",
                                               "sent-before-flush",
                                               "residual-of-another-step",
                                               "rollback-to-another-step",
                                               "sums-of-lead-alone",
                                               "rule-not-passed-on",
                                               "servers-not-reminded",
                                               "rule-not-stored",
                                               "old-rule-followed",
                                               "begun-too-early"};

// The newest rule that each server has confirmed to the lead.
using ConfirmedRules = std::map<ServerId, SetModeRequest>;

// Returns PEERS, broken by MUTANT. CONFIRMED must outlive the result. NEWEST returns the step of a
// server's newest checkpoint.
std::unique_ptr<Peers> BreakPeers(Mutant mutant, std::unique_ptr<Peers> peers,
                                  ConfirmedRules& confirmed,
                                  std::function<std::optional<Step>(ServerId)> newest);

// Breaks FRAME, which a server sends to a worker. Returns whether it has changed.
bool BreakFrame(Mutant mutant, ServerFrame& frame);

// Breaks the state in FOLDER before the next process of a server starts. Errors: those of the file
// system.
absl::Status BreakState(Mutant mutant, FaultyFiles& files, const std::string& folder);

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_MUTANT_H_
