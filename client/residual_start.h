// What a worker that joins begins with, of the residuals that an earlier process of its number
// saved (docs/decisions/0042):
//
//   file of step f        servers                                the worker begins
//   there                 predecessor's next <= f <= first step  with what the file holds
//   there                 predecessor's next > f: pushed since   with nothing
//   there                 first step < f: of another run         with nothing
//   not there, not asked                                         with nothing
#ifndef THINWIRE_CLIENT_RESIDUAL_START_H_
#define THINWIRE_CLIENT_RESIDUAL_START_H_

#include <optional>
#include <span>
#include <string>

#include "common/ids.h"
#include "proto/control.pb.h"

namespace thinwire::client {

struct ResidualStart {
  bool restore = false;
  std::string text;  // for a person; empty where there is nothing to say
};

// PATH is empty where no file was asked for; SAVED is the step of the file, if there is one; FIRST
// the step to begin with.
ResidualStart StartResiduals(const std::string& path, std::optional<Step> saved,
                             std::span<const JoinReply> replies, Step first);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_RESIDUAL_START_H_
