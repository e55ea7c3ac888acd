// ServerFlags has the values of the server program's flags.
#ifndef THINWIRE_SERVER_PROCESS_PROCESS_FLAGS_H_
#define THINWIRE_SERVER_PROCESS_PROCESS_FLAGS_H_

#include <cstdint>
#include <string>

#include "config/command_flags.h"
#include "config/connection_flags.h"
#include "config/site_job.h"

namespace thinwire {

struct ServerFlags {
  std::string config;
  uint32_t server = 0;
  SiteFlags site;                // of an aggregator
  std::string site_credentials;  // folder; empty: plaintext
  ConnectionFlags connection;    // without addresses, the server calls no other server
  BandwidthFlags bandwidth;
  std::string listen;  // empty: not given
  uint32_t threads = 0;
  std::string state_dir;       // empty: not given
  uint64_t memory_budget = 0;  // 0: the memory that is available at the start
  bool replaceable = false;    // ends with ExitCode::kPreempted after a stop signal
  std::string admin;           // empty: no admin port
  std::string trace;           // file of the trace; empty: none
};

// Declares the flags, whose values are written to FLAGS. FLAGS must outlive the parsing.
void AddFlags(CommandFlags command, ServerFlags& flags);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROCESS_PROCESS_FLAGS_H_
