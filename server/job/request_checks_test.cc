#include "server/job/request_checks.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace thinwire {
namespace {

// A server of the run 9 of job "train", with the workers 0 to 3. Two of them are wanted.
struct Given {
  uint32_t server = 0;
  bool stopping = false;
  bool agreed = true;
  bool has_model = true;
  bool sums = true;
  bool recovered = false;
};

JobState StateOf(const Given& given) {
  JobState state({.job = "train",
                  .server = ServerId{given.server},
                  .run = RunId{9},
                  .generation = Generation{3},
                  .epoch = Epoch{50}},
                 Rule::Sync(4), {}, absl::Seconds(10), /*server_count=*/2);
  state.recovered = given.recovered;
  state.stopping = given.stopping;
  state.rule.set_target(2);
  return state;
}

// Returns the message of the check, "" for OK.
template <typename Request>
std::string Result(const Given& given, const Request& request) {
  const JobState state = StateOf(given);
  const ServerCondition server = {
      .state = state,
      .agreed = given.agreed ? absl::OkStatus() : absl::UnavailableError("not agreed"),
      .has_model = given.has_model,
      .sums = given.sums};
  if constexpr (std::is_same_v<Request, JoinRequest>) {
    return std::string(CheckJoin(server, request, [] {
                         return absl::PermissionDeniedError("no token");
                       }).message());
  } else {
    return std::string(Check(server, request).message());
  }
}

constexpr char kStopping[] = "this server is stopping";
constexpr char kOtherJob[] = "job: another job (expected \"train\", got \"other\")";
constexpr char kNotTheLead[] =
    "server: not the lead (expected server 0, the first of --addresses, got server 1)";
constexpr char kLeads[] =
    "server: this is server 0, which leads (expected another server); see --addresses of server 0";
constexpr char kNoModel[] = "no worker has joined yet";

// Returns the error of a request of run 8 at SERVER.
std::string OtherRun(uint32_t server, const std::string& sender) {
  return "server " + std::to_string(server) + " lost its state: " + sender +
         " belongs to another run (expected run 0000000000000009, got 0000000000000008); restart "
         "all servers to begin a new run";
}

template <typename Request>
struct Row {
  Given given;
  Request request;
  std::string expected;
};

template <typename Request>
void Expect(const std::vector<Row<Request>>& rows) {
  ASSERT_FALSE(rows.empty());
  for (const Row<Request>& row : rows) {
    EXPECT_EQ(Result(row.given, row.request), row.expected)
        << "server " << row.given.server << ": " << row.request.ShortDebugString();
  }
}

JoinRequest Join(const std::string& job, uint32_t worker, uint64_t run, uint64_t incarnation) {
  JoinRequest request;
  request.set_job(job);
  request.set_worker(worker);
  request.set_run(run);
  request.set_incarnation(incarnation);
  return request;
}

TEST(RequestChecksTest, Join) {
  constexpr char kNoRun[] = "run: missing (expected the run of server 0's reply to Join, got none)";
  Expect<JoinRequest>({
      {{}, Join("train", 1, 0, 0), ""},
      {{.stopping = true}, Join("other", 1, 0, 0), kStopping},
      {{}, Join("other", 9, 0, 0), kOtherJob},
      {{}, Join("train", 9, 8, 0), "worker: not a worker of this job (expected below 4, got 9)"},
      {{}, Join("train", 1, 8, 0), OtherRun(0, "worker 1")},
      {{}, Join("train", 1, 0, 5), kNoRun},
      {{}, Join("train", 1, 9, 5), "no token"},
      {{.agreed = false}, Join("train", 1, 0, 0), "not agreed"},
      {{},
       Join("train", 2, 0, 0),
       "worker: above the number of workers (expected below 2, got 2); an operator can raise it "
       "with thinwire scale"},
      {{.server = 1}, Join("train", 1, 0, 0), kNoRun},
      {{.server = 1},
       Join("train", 1, 9, 0),
       "incarnation: only server 0 assigns incarnations (expected one above 0 at server 1, got 0)"},
  });
}

AdmitRequest Admit(uint32_t server, uint64_t run, uint64_t epoch = 0, uint32_t worker = 1) {
  AdmitRequest request;
  request.set_job("train");
  request.set_server(server);
  request.set_run(run);
  request.set_epoch(epoch);
  request.set_worker(worker);
  request.set_incarnation(1);
  return request;
}

TEST(RequestChecksTest, Admit) {
  AdmitRequest other = Admit(1, 9);
  other.set_job("other");
  Expect<AdmitRequest>({
      {{.server = 1}, Admit(1, 9), ""},
      {{.server = 1}, Admit(1, 9, 50), ""},
      {{.server = 1, .stopping = true}, Admit(1, 9), kStopping},
      {{.server = 1}, other, kOtherJob},
      {{.server = 1},
       Admit(2, 9),
       "server: another server (expected 1 and not the lead, got 2); see --addresses of server 0"},
      {{.server = 0},
       Admit(0, 9),
       "server: another server (expected 0 and not the lead, got 0); see --addresses of server 0"},
      {{.server = 1},
       Admit(1, 9, 0, 4),
       "worker: not a worker of this job (expected below 4, got 4)"},
      {{.server = 1},
       Admit(1, 0),
       "run, incarnation: missing (expected numbers above 0, got 0, 1)"},
      {{.server = 1},
       Admit(1, 9, 49),
       "server 1 lost its state: it was restarted (expected epoch 49, got 50); restart all "
       "servers to begin a new run"},
      {{.server = 1, .recovered = true}, Admit(1, 9, 49), ""},
      {{.server = 1, .has_model = false}, Admit(1, 8), ""},
      {{.server = 1, .agreed = false, .has_model = false}, Admit(1, 8), "not agreed"},
      {{.server = 1},
       Admit(1, 8),
       "server 0 lost its state: server 1 belongs to another run (expected run 0000000000000008, "
       "got 0000000000000009); restart all servers to begin a new run"},
  });
}

SumRequest Sum(uint64_t run, uint64_t generation, double sum = 1) {
  SumRequest request;
  request.set_job("train");
  request.set_run(run);
  request.set_generation(generation);
  request.add_sums()->set_update(sum);
  return request;
}

TEST(RequestChecksTest, Sum) {
  constexpr char kAddsNoSums[] =
      "server: adds no sums for server 0 (expected another server of a job with clip_norm or "
      "optimizer lars or lamb)";
  Expect<SumRequest>({
      {{.server = 1}, Sum(9, 3), ""},
      {{.server = 1, .stopping = true}, Sum(9, 3), kStopping},
      {{.server = 1}, Sum(8, 3), OtherRun(1, "server 0")},
      {{.server = 1, .agreed = false}, Sum(9, 3), "not agreed"},
      {{.server = 0}, Sum(9, 3), kAddsNoSums},
      {{.server = 1, .sums = false}, Sum(9, 3), kAddsNoSums},
      {{.server = 1}, Sum(9, 2), "generation: another one (expected 3, got 2)"},
      {{.server = 1},
       Sum(9, 3, -1),
       "sums: out of range (expected finite sums of at least 0, got -1, 0)"},
      {{.server = 1},
       Sum(9, 3, std::numeric_limits<double>::infinity()),
       "sums: out of range (expected finite sums of at least 0, got inf, 0)"},
  });
}

TEST(RequestChecksTest, Leave) {
  LeaveRequest known;
  known.set_worker(3);
  LeaveRequest unknown;
  unknown.set_worker(4);
  LeaveRequest other_run = known;
  other_run.set_run(8);
  Expect<LeaveRequest>({
      {{}, known, ""},
      {{.stopping = true}, known, ""},
      {{.agreed = false}, known, "not agreed"},
      {{}, unknown, "worker: not a worker of this job (expected below 4, got 4)"},
      {{.server = 1}, other_run, OtherRun(1, "worker 3")},
  });
}

TEST(RequestChecksTest, ScaleAndSetMode) {
  ScaleRequest scale;
  ScaleRequest other_scale;
  other_scale.set_job("other");
  Expect<ScaleRequest>({
      {{}, scale, ""},
      {{.stopping = true}, other_scale, kStopping},
      {{}, other_scale, kOtherJob},
      {{.agreed = false}, scale, "not agreed"},
      {{.has_model = false}, scale, kNoModel},
      {{.server = 1}, scale, kNotTheLead},
  });
  SetModeRequest of_operator;
  SetModeRequest of_lead;
  of_lead.set_run(9);
  SetModeRequest of_another_lead;
  of_another_lead.set_run(8);
  Expect<SetModeRequest>({
      {{}, of_operator, ""},
      {{.server = 1}, of_lead, ""},
      {{.stopping = true}, of_operator, kStopping},
      {{.server = 1, .has_model = false}, of_lead, kNoModel},
      {{.server = 1}, of_operator, kNotTheLead},
      {{}, of_lead, kLeads},
      {{.server = 1}, of_another_lead, OtherRun(1, "server 0")},
  });
}

TEST(RequestChecksTest, DrainAndCheckpoints) {
  DrainRequest server;
  DrainRequest worker;
  worker.set_worker(3);
  DrainRequest unknown;
  unknown.set_worker(4);
  Expect<DrainRequest>({
      {{.server = 1}, server, ""},
      {{}, worker, ""},
      {{.stopping = true}, server, kStopping},
      {{.server = 1}, worker, kNotTheLead},
      {{}, unknown, "worker: not a worker of this job (expected below 4, got 4)"},
  });
  SaveCheckpointRequest of_operator;
  SaveCheckpointRequest of_lead;
  of_lead.set_run(9);
  Expect<SaveCheckpointRequest>({
      {{}, of_operator, ""},
      {{.server = 1}, of_operator, kNotTheLead},
      {{.server = 1}, of_lead, ""},
      {{.stopping = true}, of_operator, kStopping},
  });
  RestoreCheckpointRequest restore;
  RestoreCheckpointRequest other_job;
  other_job.set_job("other");
  Expect<RestoreCheckpointRequest>({
      {{}, restore, ""},
      {{}, other_job, kOtherJob},
      {{.server = 1}, restore, kNotTheLead},
      {{.stopping = true}, restore, kStopping},
  });
  Expect<FollowRequest>({{{}, {}, ""}, {{.stopping = true}, {}, kStopping}});
  Expect<RollbackRequest>({{{}, {}, ""}, {{.stopping = true}, {}, kStopping}});
}

TEST(RequestChecksTest, HeartbeatsAndStatusAreAlwaysAnswered) {
  HeartbeatRequest unknown;
  unknown.set_worker(4);
  Expect<HeartbeatRequest>({
      {{.stopping = true, .agreed = false, .has_model = false}, {}, ""},
      {{}, unknown, "worker: not a worker of this job (expected below 4, got 4)"},
  });
  Expect<StatusRequest>({{{.stopping = true, .agreed = false, .has_model = false}, {}, ""}});
}

}  // namespace
}  // namespace thinwire
