// For tests of durability: two servers with their disks and two workers, in one process and in
// virtual time. A test starts, kills and stops the servers, and lets the workers train.
#ifndef THINWIRE_SERVER_JOB_TESTING_TWO_SERVERS_H_
#define THINWIRE_SERVER_JOB_TESTING_TWO_SERVERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/recovery_spec.h"
#include "common/spec/rule.h"
#include "common/spec/schedule_spec.h"
#include "common/time/virtual_time.h"
#include "gtest/gtest.h"
#include "proto/control.pb.h"
#include "proto/frame.h"
#include "server/core/effects.h"
#include "server/durable/checkpoint.h"
#include "server/durable/testing/faulty_files.h"
#include "server/job/job.h"
#include "server/job/testing/test_stream.h"

namespace thinwire {

class TwoServersTest : public testing::Test {
 protected:
  static constexpr uint32_t kServers = 2;
  static constexpr uint32_t kFp32 = 1;
  static constexpr auto kAccept = static_cast<uint32_t>(Verdict::kAccept);
  static constexpr char kFolder[] = "/state";
  static constexpr absl::Duration kInterval = absl::Hours(1);
  static constexpr int kMostTicks = 100'000;

  // A server process with its disk, which survives the process.
  struct Server {
    FaultyFiles files;
    VirtualTime disk_time;                       // of its tasks in the background
    bool is_disk_held = false;                   // the tasks do not run
    std::shared_ptr<const Checkpoint> snapshot;  // of the process; see DurableOptions
    std::unique_ptr<Job> job;
    uint64_t epoch = 0;
    uint64_t awaited_count = 0;  // checkpoints of this process for which the test has waited
    bool restart_wanted = false;
    absl::Status failure;
  };

  // A worker process: its identity and its streams to the servers.
  struct Worker {
    uint32_t number = 0;
    uint64_t incarnation = 0;
    uint64_t generation = 0;
    bool had_begun = false;  // JoinRequest.had_begun
    std::vector<std::unique_ptr<TestStream>> streams;
  };

  TwoServersTest();
  ~TwoServersTest() override;

  // Starts server S with the state on its disk. IN_PLACE: after a rollback.
  absl::Status StartServer(uint32_t s, bool in_place = false);
  void StartServers();
  // Destroys the job of server S.
  void Remove(uint32_t s);
  // Kills the process of server S, which has no work left; its disk keeps only what was flushed.
  void Kill(uint32_t s);
  // Starts server S again with an empty folder.
  void RestartWithoutState(uint32_t s);
  void SetReachable(uint32_t s, bool reachable);

  StatusReply Status(uint32_t s);
  // Returns the mode that server S follows, or the one that it will follow.
  std::string NewestMode(uint32_t s);
  // Changes the mode at the lead.
  absl::StatusOr<SetModeReply> SetMode(const SetModeRequest& request);
  // Returns the tasks that run next: those that are due, else those of a disk; null if there are
  // none.
  VirtualTime* DueTasks();
  void RunTask();
  void RunDueTasks();
  void Advance(absl::Duration duration);

  void Stop(uint32_t s);
  void TickLead() { Tick(0); }
  void Tick(uint32_t s);
  // Ticks the lead, and restarts servers in place, until DONE returns true.
  void TickUntil(const std::function<bool()>& done);
  // Ticks until both servers serve GENERATION and a worker can join them.
  void AwaitGeneration(uint64_t generation);
  // Ticks the lead COUNT times. The servers answer its calls before the next tick.
  void RunTicks(int count);
  // Advances the time by an interval and waits until the lead has announced a step, which the other
  // server knows. Returns the step.
  uint64_t Announce();
  std::optional<uint64_t> AnnouncedStep();
  std::vector<Step> StepsOf(uint32_t s);
  bool HasStep(uint32_t s, uint64_t step);
  // Ticks until both servers have completed their next checkpoint, which is that of STEP.
  void AwaitCheckpoint(uint64_t step);

  // Asks server S for a checkpoint of all servers.
  Pending<SaveCheckpointReply> StartSave(uint32_t s = 0, double seconds = 86400);
  absl::StatusOr<SaveCheckpointReply> Save();
  // Asks server S to send all servers back to STEP.
  absl::StatusOr<RestoreCheckpointReply> Restore(uint64_t step, uint32_t s = 0);
  // Worker 0 tells the lead in a heartbeat that it has tested the parameters of STEP.
  void ReportTest(uint64_t step, double accuracy);
  // Worker 0 reports a test that is among the best, and trains until both servers have the
  // checkpoint after it. Returns the step of the checkpoint.
  uint64_t TrainToTested(double accuracy);
  // Returns the accuracies of the tested checkpoints of server S, with their steps.
  std::map<uint64_t, double> TestedOf(uint32_t s);
  static void ExpectSteps(const absl::StatusOr<SaveCheckpointReply>& reply, uint64_t step);
  static void ExpectLostState(const absl::Status& status, uint32_t s);
  absl::StatusOr<JoinReply> Join(uint32_t s, const Worker& worker);
  Pending<JoinReply> StartJoin(uint32_t s, const Worker& worker);
  // Joins all servers, as a new process or as the one that WORKER is.
  void JoinAll(Worker& worker);
  void LeaveServer(const Worker& worker, uint32_t s);
  void Leave(Worker& worker);
  WorkerFrame FrameOf(const Worker& worker, uint32_t s) const;
  void SendReads(Worker& worker, uint64_t step, bool seed = false);
  void AwaitParameters(Worker& worker, uint64_t step);
  void SendPushes(Worker& worker, uint64_t step);
  void SendPushesTo(Worker& worker, uint32_t s, uint64_t step);
  void AwaitAccepted(Worker& worker, uint64_t step);

  // Worker 0 joins, sends the first values and reads step 0. Both servers then have a checkpoint of
  // step 0.
  void Begin();
  // Worker 0 joins a job of two workers and sends the first values. Both servers then have a
  // checkpoint of step 0.
  void BeginBeforeTheOtherWorker();
  // Worker 0 trains up to step UNTIL. Remembers the masters before every step.
  void Train(uint64_t until);
  // Worker 0 joins again and goes on from STEP.
  void Resume(uint64_t step);
  // Trains until both servers have a checkpoint of a new announced step. Returns the step.
  uint64_t TrainToCheckpoint();
  // Returns the bytes of all masters of both servers and their averages.
  std::string Masters();

  Rule rule_ = Rule::Sync(1);
  Durability durability_ = Durability::kCheckpoint;
  bool is_durable_ = true;
  bool keeps_snapshots_ = false;  // the servers return to snapshots in memory
  RetentionSpec retention_;
  double clip_norm_ = 0;
  absl::Duration lease_ = absl::Hours(1000);
  ScheduleSpec schedule_ = {.learning_rate = 0.5};
  uint64_t planned_examples_ = 0;
  const Partition partition_ =
      Partition::Make({{"w", {64, 64}}, {"v", {64, 64}}, {"b", {3}}}, 4096, kServers).value();
  VirtualTime time_;
  const std::function<void()> run_task_ = [this] { RunTask(); };
  uint64_t starts_ = 0;
  uint64_t run_ = 0;
  Worker w0_ = {.number = 0};
  Worker w1_ = {.number = 1};
  uint64_t step_ = 0;                        // the next step of worker 0
  std::map<uint64_t, std::string> masters_;  // before each step
  std::set<uint32_t> cut_;                   // servers that the lead cannot reach
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_TESTING_TWO_SERVERS_H_
