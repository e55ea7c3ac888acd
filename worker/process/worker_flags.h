// WorkerFlags has the values of the worker program's flags, except the flags for fields of the job
// file (FieldFlags).
#ifndef THINWIRE_WORKER_PROCESS_WORKER_FLAGS_H_
#define THINWIRE_WORKER_PROCESS_WORKER_FLAGS_H_

#include <cstdint>
#include <string>

#include "config/command_flags.h"
#include "config/connection_flags.h"
#include "config/site_job.h"

namespace thinwire {

struct WorkerFlags {
  std::string config;
  std::string worker = "0";  // a number, or auto
  SiteFlags site;            // of a worker whose addresses are that of an aggregator
  ConnectionFlags connection;
  bool wait_for_servers = false;
  BandwidthFlags bandwidth;
  std::string state_dir;
  std::string delay;  // value of --delay; empty: the job file sets the delay
  std::string output;
  std::string keep = "last";
  std::string evaluate;  // path of a model file; not empty: the worker only evaluates this file
  std::string admin;     // empty: no admin port
  std::string log_events = "all";
  std::string tensorboard;  // folder of TensorBoard's event files; empty: none
  std::string trace;        // file of the trace; empty: none
};

// Declares the flags, whose values are written to FLAGS. FLAGS must outlive the parsing.
void AddFlags(CommandFlags command, WorkerFlags& flags);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_PROCESS_WORKER_FLAGS_H_
