// Simulation runs a whole cluster in one thread, from one seed: servers, workers, their disks and
// the network between them, with faults.
//
//   network   lose, duplicate, reorder and delay messages; cut one worker off one server
//   workers   end and start again, continue although a newer process replaces them, are suspended,
//             restore saved residuals
//   peers     lose and delay the calls of the lead; repeat its changes of the rule much later
//   servers   end and start again, with or without a loss of power; are suspended; their clocks jump;
//             a lease runs out at a single shard; in stories, a folder is lost or a record damaged
//   operator  changes the mode
//   disks     torn and lost writes, failed flushes, full disks, a crash during any file operation
//
// After the faults end, every worker must reach its last step. The ledgers (ledger.h) check the
// promises of docs/consistency.md and docs/recovery.md. Not thread-safe.
#ifndef THINWIRE_TESTS_SIMULATION_SIMULATION_H_
#define THINWIRE_TESTS_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "proto/control.pb.h"
#include "server/core/testing/random_events.h"
#include "server/durable/testing/faulty_files.h"
#include "tests/simulation/job.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/network.h"
#include "tests/simulation/operator.h"
#include "tests/simulation/peers.h"
#include "tests/simulation/server.h"
#include "tests/simulation/worker.h"

namespace thinwire::simulation {

// The modes of the jobs that a seed may draw.
enum class Mode : uint8_t { kSync, kBackup, kSsp, kAsync };

inline constexpr const char* kModeNames[] = {"sync", "backup", "ssp", "async"};
inline constexpr const char* kDurabilityNames[] = {"none", "checkpoint", "log"};

// A fault at a given tick.
struct ScriptedFault {
  enum class Kind : uint8_t {
    kKillServer,
    kPowerLoss,
    kLoseFolder,    // a server loses its power and its files
    kDamageRecord,  // a server is killed, and a record of its log that was flushed changes
    kKillWorker,
  };
  uint64_t tick = 0;
  Kind kind = Kind::kKillServer;
  uint32_t number = 0;  // of the server or worker
};

struct SimulationOptions {
  uint64_t seed = 1;
  Mode mode = Mode::kSync;
  Durability durability = Durability::kLog;
  BrokenRule broken = BrokenRule::kNone;
  std::ostream* trace = nullptr;  // receives one line per event
  // If set, the simulation runs this job, and its only faults are those of `script`.
  std::optional<Job> job;
  std::vector<ScriptedFault> script;
};

// Returns the options of SEED: a twelfth of the seeds has each mode and durability.
SimulationOptions OptionsOf(uint64_t seed);

// Counts of events, with which tests assert that faults happened.
struct SimulationCounts {
  uint64_t worker_deaths = 0;
  uint64_t restored_residuals = 0;
  uint64_t server_deaths = 0;
  uint64_t power_losses = 0;
  uint64_t disk_faults = 0;
  uint64_t expired_leases = 0;  // at a single shard
  uint64_t rollbacks = 0;       // of servers
  uint64_t gave_up = 0;         // workers that gave up a lost server
  uint64_t accepted = 0;
  uint64_t late = 0;
  uint64_t fenced = 0;
  uint64_t updates = 0;
  uint64_t clipped = 0;    // updates with a factor below 1
  uint64_t unclipped = 0;  // updates of clipping jobs with factor 1
  uint64_t rule_changes = 0;
  uint64_t undone = 0;  // pushes that a rollback undid
  uint64_t delta_answers = 0;
  uint64_t full_answers = 0;

  void Add(const SimulationCounts& other);
  friend std::ostream& operator<<(std::ostream& out, const SimulationCounts& counts);
};

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options);

  // Runs the simulation to its end. Returns one line per violation, or an empty string.
  std::string Run();
  const SimulationCounts& counts() const { return counts_; }
  const Job& job() const { return job_; }

 private:
  struct ServerMachine {
    explicit ServerMachine(uint64_t seed) : files(seed) {}
    FaultyFiles files;
    bool damaged = false;            // the log contains a damaged record
    std::unique_ptr<Server> server;  // null: no process
    uint64_t start_at = 0;           // the tick at which the next process starts
    uint64_t suspended_until = 0;
    uint64_t clock_ahead = 0;  // ticks by which the clock has jumped
    uint64_t epoch = 0;
    bool has_state = false;  // whether the files contain the state of the job
    bool lost = false;       // no further process starts
  };
  struct WorkerMachine {
    SavedStates saved;
    std::optional<uint64_t> start_at;  // the tick at which the next process starts
    bool done = false;                 // a process has left the job
    bool abandoned = false;            // no further process starts
  };
  struct Process {
    std::unique_ptr<Worker> worker;
    uint64_t suspended_until = 0;
    bool seen_dead = false;
  };

  void StartServer(uint32_t server, bool rolled_back);
  void SetFaults(const NetworkFaults& faults);
  void StopServer(uint32_t server, bool power_loss);
  // Stops the server if STATUS is an error of its files.
  void StopIfFailed(uint32_t server, const absl::Status& status);
  bool Runs(uint32_t server) const;
  uint64_t ClockOf(uint32_t server) const { return now_ + servers_[server]->clock_ahead; }
  void StartProcess(uint32_t worker);
  // Returns the newest process of the worker if it runs, or null.
  Process* NewestProcess(uint32_t worker);
  void StartDue();
  void RestartDead();
  // Ends all processes, because the job cannot go on.
  void EndJob(const std::string& reason);
  void InjectFaults();
  void InjectScripted();
  void DamageRecord(uint32_t server);
  absl::StatusOr<Epoch> Admit(ServerId server, RunId run, Epoch known, const JoinRequest& join);
  void HarmWorker();
  void HarmServer();
  void HarmLease();
  void HarmDisk();
  bool MayLoseServers() const;
  void EndFaults();
  void DeliverMessages();
  void TickAll();
  void TakeCheckpoints();
  // In jobs with rounds and checkpoints, the lead calls this function about twice a second. It
  // orders rollbacks and announces checkpoints.
  void Follow();
  void RollBack(uint32_t server, Generation generation, Step step);
  void Announce();
  bool Over() const;
  void RestartAllOnce();
  bool IsAnyServerLost() const;
  // Returns whether a full round waits for its norm.
  bool WaitsForNorm() const;
  // Returns the newest rule of all shards, or nullopt if they differ.
  std::optional<Rule> NewestRule() const;
  // Compares the newest rule with the one that the lead has confirmed to the operator.
  void CheckRule();
  std::string Violations();
  std::string DescribeStuck() const;
  bool IsCut(ProcessId process, ServerId server) const;
  void Trace(const std::string& text) const;
  // Returns a function that calls Trace, or null without a trace.
  std::function<void(const std::string&)> TraceFunction() const;

  const SimulationOptions options_;
  SeededRandom random_;
  const Job job_;
  const uint64_t fault_ticks_;
  const bool loses_server_;  // the job loses a server for good
  uint64_t now_ = 0;
  Operator operator_;
  Network<ToServer> to_servers_;
  Network<ToWorker> to_workers_;
  PeerWire peer_wire_;
  std::vector<ShardLedger> ledgers_;
  std::vector<std::unique_ptr<ServerMachine>> servers_;
  std::vector<WorkerMachine> workers_;
  std::vector<Process> processes_;
  std::vector<std::vector<uint64_t>> cut_until_;  // for each worker and server
  std::optional<Step> announced_;                 // the step of the newest common checkpoint
  uint64_t announce_at_ = 0;
  SimulationCounts counts_;
  std::vector<std::string> violations_;
};

}  // namespace thinwire::simulation

#endif  // THINWIRE_TESTS_SIMULATION_SIMULATION_H_
