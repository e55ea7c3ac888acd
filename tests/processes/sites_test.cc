// Tests sites with real processes: two aggregators with two workers each, and two servers of the job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/exit_code.h"
#include "common/files/read_file.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kServers = 2;
constexpr uint32_t kSites = 2;
constexpr uint32_t kSiteWorkers = 2;
// Each worker has 500 examples in batches of 10: 50 steps per epoch.
constexpr uint64_t kEpochSteps = 50;

// CONSISTENCY: the fields of this name besides `workers`.
std::string JobText(uint32_t workers, const std::string& settings, uint32_t epochs,
                    const std::string& consistency = "lease_seconds: 3") {
  return absl::StrCat("name: \"wide\" servers: ", kServers, " consistency { workers: ", workers,
                      " ", consistency,
                      " } optimization { optimizer: momentum learning_rate: 0.01 } ", settings,
                      " task { model: softmax train_examples: 2000 test_examples: 1000 batch_size: "
                      "10 epochs: ",
                      epochs, " }");
}

// Returns the values of a file of --output, which has one header with the names and shapes.
std::vector<float> ValuesOf(const std::string& path) {
  const std::string bytes = ReadWholeFile(path).value();
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const size_t begin = sizeof(header) + header;
  std::vector<float> values((bytes.size() - begin) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + begin, values.size() * sizeof(float));
  return values;
}

class SitesTest : public testing::Test {
 protected:
  void StartServer(uint32_t server) {
    std::vector<std::string> flags;
    if (durable_) flags = {"--state_dir", daemons_.folder() + "/upper"};
    daemons_.StartServer(server, job_, addresses_, flags);
  }
  void StartServers() {
    // Server 0 is the last one, because it needs the addresses of the others.
    for (uint32_t s = kServers; s-- > 0;) StartServer(s);
  }
  static std::string NameOf(uint32_t site) { return absl::StrCat("aggregator", site); }
  static std::string NameOf(uint32_t site, uint32_t worker) {
    return absl::StrCat("worker", site, "-", worker);
  }
  std::vector<std::string> SiteFlags(uint32_t site) const {
    return {"--site",        absl::StrCat(site),   "--site_workers", absl::StrCat(kSiteWorkers),
            "--site_backup", absl::StrCat(backup_)};
  }
  // Makes a certificate of JOB, and returns its folder. ROLE: the role and the flag of the number.
  std::string Issue(const std::string& job, const std::vector<std::string>& role) {
    const std::string folder = absl::StrCat(daemons_.folder(), "/", job, absl::StrJoin(role, ""));
    std::vector<std::string> arguments = {"certs", "issue", ca_,    "--job",
                                          job,     "--out", folder, "--role"};
    arguments.insert(arguments.end(), role.begin(), role.end());
    const ProcessResult issued = daemons_.Run("cli/thinwire", arguments);
    EXPECT_EQ(issued.exit, ExitStatus()) << issued.log;
    return folder;
  }
  void StartAggregator(uint32_t site) {
    std::vector<std::string> flags = SiteFlags(site);
    flags.insert(flags.end(),
                 {"--addresses", absl::StrJoin(addresses_, ","), "--listen", aggregators_[site]});
    if (durable_) {
      flags.insert(flags.end(), {"--state_dir", absl::StrCat(daemons_.folder(), "/site", site)});
    }
    aggregators_[site] = daemons_.StartServer(NameOf(site), job_, flags);
    ASSERT_NE(aggregators_[site], "");
  }
  void StartSites(std::vector<std::string> worker_flags = {}) {
    for (uint32_t site = 0; site < site_count_; ++site) {
      StartAggregator(site);
      for (uint32_t w = 0; w < kSiteWorkers; ++w) {
        std::vector<std::string> flags = SiteFlags(site);
        flags.insert(flags.end(), {"--worker", absl::StrCat(w), "--addresses", aggregators_[site]});
        flags.insert(flags.end(), worker_flags.begin(), worker_flags.end());
        daemons_.StartWorker(NameOf(site, w), job_, flags);
      }
    }
  }
  void Kill(const std::string& name) {
    daemons_.Signal(name, SIGKILL);
    daemons_.WaitForEnd(name);
  }
  // Expects that all workers and aggregators end in order after STEPS steps, and returns the sum of
  // the workers' counters.
  WorkerCounters AwaitEnd(uint64_t steps) {
    WorkerCounters sum;
    for (uint32_t site = 0; site < site_count_; ++site) {
      for (uint32_t w = 0; w < kSiteWorkers; ++w) {
        const auto done =
            daemons_.WaitForEvent(NameOf(site, w), IsEvent(WorkerEvent::EventCase::kDone));
        EXPECT_TRUE(done.has_value());
        if (!done.has_value()) continue;
        const WorkerCounters& counters = done->done().counters();
        // A rollback repeats a step, or its worker has not heard that the step was complete.
        EXPECT_LE(std::abs(static_cast<double>(done->done().steps()) - static_cast<double>(steps)),
                  static_cast<double>(counters.rollbacks()));
        sum.set_rollbacks(sum.rollbacks() + counters.rollbacks());
        sum.set_repeated_steps(sum.repeated_steps() + counters.repeated_steps());
        EXPECT_EQ(daemons_.WaitForEnd(NameOf(site, w)).exit, ExitStatus());
      }
      const ProcessResult end = daemons_.WaitForEnd(NameOf(site));
      EXPECT_EQ(end.exit, ExitStatus()) << end.log;
      EXPECT_THAT(end.log, HasSubstr("the run of the site has ended"));
    }
    return sum;
  }

  // Expects that the model file OF_SITES is that of one epoch of a job of WORKERS workers without
  // sites.
  void ExpectModelOfAJob(const std::string& of_sites, uint32_t workers) {
    const std::string flat = daemons_.folder() + "/flat.safetensors";
    const std::string job = daemons_.Write("flat.textproto", JobText(workers, "", 1));
    const ProcessResult end =
        daemons_.Run("cli/thinwire", {"train", "--config", job, "--output", flat});
    ASSERT_EQ(end.exit, ExitStatus()) << end.log;
    const std::vector<float> expected = ValuesOf(flat);
    const std::vector<float> values = ValuesOf(of_sites);
    ASSERT_EQ(values.size(), expected.size());
    ASSERT_EQ(values.size(), 7850u);
    double largest = 0;
    double trained = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(double{values[i]} - expected[i]));
      trained = std::max(trained, std::abs(double{values[i]}));
    }
    EXPECT_GT(trained, 0.01);
    EXPECT_LE(largest, 1e-6);
  }
  // Kills the aggregator of site 0 in a job with CONSISTENCY, starts it again, and waits for the end.
  void KillAggregatorOf(const std::string& consistency) {
    durable_ = true;
    job_ = JobText(kSites, "recovery { durability: checkpoint checkpoint_seconds: 1 }", 3,
                   absl::StrCat("lease_seconds: 3 ", consistency));
    StartServers();
    StartSites({"--delay", "20ms"});
    ASSERT_TRUE(daemons_.WaitForEvent(NameOf(0, 0), IsStep(50)).has_value());
    Kill(NameOf(0));
    StartAggregator(0);
    const WorkerCounters counters = AwaitEnd(3 * kEpochSteps);
    EXPECT_GE(counters.rollbacks(), kSiteWorkers);
    EXPECT_LE(counters.repeated_steps(), counters.rollbacks());
  }

  Daemons daemons_;
  const std::string ca_ = daemons_.folder() + "/ca";
  bool durable_ = false;
  uint32_t site_count_ = kSites;
  uint32_t backup_ = 0;
  std::string job_ = JobText(kSites, "", 1);
  std::vector<std::string> addresses_ = std::vector<std::string>(kServers, "127.0.0.1:0");
  std::vector<std::string> aggregators_ = std::vector<std::string>(kSites, "127.0.0.1:0");
};

TEST_F(SitesTest, TwoSitesOfTwoWorkersTrainAsAJobOfFour) {
  const std::string of_sites = daemons_.folder() + "/sites.safetensors";
  StartServers();
  StartSites({"--output", of_sites});
  AwaitEnd(kEpochSteps);
  ExpectModelOfAJob(of_sites, kSites * kSiteWorkers);
}

TEST_F(SitesTest, WorkersContinueAfterTheirAggregatorWasKilled) {
  durable_ = true;
  job_ = JobText(kSites,
                 "compression { push: topk density: 0.1 pull: bf16 } "
                 "recovery { durability: checkpoint checkpoint_seconds: 1 }",
                 6);
  StartServers();
  StartSites({"--delay", "20ms"});
  for (const uint64_t step : {60, 160}) {
    ASSERT_TRUE(daemons_.WaitForEvent(NameOf(0, 0), IsStep(step)).has_value());
    Kill(NameOf(0));
    StartAggregator(0);
  }
  const WorkerCounters counters = AwaitEnd(6 * kEpochSteps);
  EXPECT_GE(counters.rollbacks(), 2 * kSiteWorkers);
  // The servers had every earlier round of the killed aggregators.
  EXPECT_LE(counters.repeated_steps(), counters.rollbacks());
}

TEST_F(SitesTest, AnAggregatorOfAnAsynchronousJobContinuesAfterKill) {
  KillAggregatorOf("mode: async");
}

TEST_F(SitesTest, AnAggregatorOfABoundedJobContinuesAfterKill) {
  KillAggregatorOf("mode: ssp slack: 2");
}

// The folder has the name of the file that the aggregator writes next, as a full disk has no room.
TEST_F(SitesTest, AGradientWhoseNoteCannotBeWrittenIsNotPushed) {
  durable_ = true;
  site_count_ = 1;
  job_ = JobText(1, "recovery { durability: checkpoint checkpoint_seconds: 1 }", 1);
  const std::string of_site = daemons_.folder() + "/site.safetensors";
  const std::string note = daemons_.folder() + "/site0/server-0/relayed.tmp";
  const std::string blocking = daemons_.folder() + "/blocking";
  ASSERT_TRUE(std::filesystem::create_directories(blocking + "/not-empty"));
  StartServers();
  StartSites({"--delay", "20ms", "--output", of_site});
  ASSERT_TRUE(daemons_.WaitForEvent(NameOf(0, 0), IsStep(30)).has_value());
  // Fails while the aggregator's file has this name.
  std::error_code error;
  do {
    std::filesystem::rename(blocking, note, error);
  } while (error);
  const ProcessResult end = daemons_.WaitForEnd(NameOf(0));
  EXPECT_EQ(end.exit.code, static_cast<int>(ExitCode::kIo)) << end.log;
  EXPECT_THAT(end.log, HasSubstr(note + ": cannot "));
  std::filesystem::remove_all(note);
  StartAggregator(0);
  AwaitEnd(2 * kEpochSteps);  // of a site that has all examples
  ExpectModelOfAJob(of_site, kSiteWorkers);
}

TEST_F(SitesTest, SitesFollowARollbackOfTheServers) {
  durable_ = true;
  job_ = JobText(kSites, "recovery { durability: checkpoint checkpoint_seconds: 1 }", 4);
  StartServers();
  StartSites({"--delay", "20ms"});
  ASSERT_TRUE(daemons_.WaitForEvent(NameOf(0, 0), IsStep(60)).has_value());
  Kill("server1");
  StartServer(1);
  const WorkerCounters counters = AwaitEnd(4 * kEpochSteps);
  EXPECT_EQ(counters.rollbacks(), 0u) << "the steps of a site go on";
  EXPECT_THAT(daemons_.LogOf(NameOf(0)), HasSubstr("the servers continue from an earlier step"));
}

TEST_F(SitesTest, SitesWaitForAKilledServerWithALog) {
  durable_ = true;
  job_ = JobText(kSites, "recovery { durability: log }", 4);
  StartServers();
  StartSites({"--delay", "20ms"});
  ASSERT_TRUE(daemons_.WaitForEvent(NameOf(0, 0), IsStep(60)).has_value());
  Kill("server0");
  StartServer(0);
  EXPECT_EQ(AwaitEnd(4 * kEpochSteps).rollbacks(), 0u);
  for (uint32_t site = 0; site < kSites; ++site) {
    EXPECT_THAT(daemons_.LogOf(NameOf(site)), HasSubstr("came back after"));
  }
}

TEST_F(SitesTest, AStoppedAggregatorContinues) {
  durable_ = true;
  job_ = JobText(kSites, "recovery { durability: checkpoint checkpoint_seconds: 1 }", 4);
  StartServers();
  StartSites({"--delay", "20ms"});
  ASSERT_TRUE(daemons_.WaitForEvent(NameOf(1, 0), IsStep(60)).has_value());
  daemons_.Signal(NameOf(1), SIGTERM);
  EXPECT_EQ(daemons_.WaitForEnd(NameOf(1)).exit, ExitStatus());
  StartAggregator(1);
  AwaitEnd(4 * kEpochSteps);
}

TEST_F(SitesTest, AnOperatorRemovesASite) {
  job_ = JobText(kSites, "", 4);
  StartServers();
  StartSites({"--delay", "20ms"});
  ASSERT_TRUE(daemons_.WaitForEvent(NameOf(1, 0), IsStep(60)).has_value());
  const ProcessResult drained = daemons_.Run(
      "cli/thinwire", {"drain", "--addresses", absl::StrJoin(addresses_, ","), "--worker", "1"});
  EXPECT_EQ(drained.exit, ExitStatus()) << drained.log;
  for (uint32_t w = 0; w < kSiteWorkers; ++w) {
    const ProcessResult end = daemons_.WaitForEnd(NameOf(1, w));
    EXPECT_EQ(end.exit, ExitStatus()) << end.log;
    EXPECT_THAT(end.log, HasSubstr("an operator removed this worker"));
  }
  EXPECT_EQ(daemons_.WaitForEnd(NameOf(1)).exit, ExitStatus());
  for (uint32_t w = 0; w < kSiteWorkers; ++w) {
    EXPECT_EQ(daemons_.WaitForEnd(NameOf(0, w)).exit, ExitStatus());
  }
  EXPECT_EQ(daemons_.WaitForEnd(NameOf(0)).exit, ExitStatus());
}

TEST_F(SitesTest, AnOperatorChangesASiteToBackupWorkers) {
  job_ = JobText(kSites, "", 3);
  StartServers();
  StartSites({"--delay", "20ms"});
  ASSERT_TRUE(daemons_.WaitForEvent(NameOf(0, 0), IsStep(30)).has_value());
  const auto change = [&](std::vector<std::string> mode) {
    mode.insert(mode.begin(), {"mode", "--addresses", aggregators_[0], "--set"});
    return daemons_.Run("cli/thinwire", mode);
  };
  EXPECT_THAT(change({"async"}).log,
              HasSubstr("mode: not possible in a site (expected sync or backup, got async)"));
  const ProcessResult changed = change({"backup", "--backup", "1"});
  EXPECT_EQ(changed.exit, ExitStatus()) << changed.log;
  for (uint32_t site = 0; site < kSites; ++site) {
    for (uint32_t w = 0; w < kSiteWorkers; ++w) {
      const ProcessResult end = daemons_.WaitForEnd(NameOf(site, w));
      EXPECT_EQ(end.exit, ExitStatus()) << end.log;
    }
    EXPECT_EQ(daemons_.WaitForEnd(NameOf(site)).exit, ExitStatus());
  }
}

TEST_F(SitesTest, ASiteInModeBackupDoesNotWaitForASlowWorker) {
  backup_ = 1;
  // The lease does not end while the worker is stopped.
  job_ = JobText(kSites, "", 100, "lease_seconds: 600");
  StartServers();
  StartSites({"--delay", "5ms"});
  ASSERT_TRUE(daemons_.WaitForEvent(NameOf(1, 1), IsStep(10)).has_value());
  daemons_.Signal(NameOf(1, 1), SIGSTOP);
  const auto step = daemons_.WaitForEvent(NameOf(1, 0), IsStep(10));
  ASSERT_TRUE(step.has_value());
  EXPECT_TRUE(daemons_.WaitForEvent(NameOf(1, 0), IsStep(step->step().step() + 50)).has_value());
  daemons_.Signal(NameOf(1, 1), SIGCONT);
  EXPECT_TRUE(daemons_.WaitForEvent(NameOf(1, 1), IsStep(step->step().step() + 50)).has_value());
}

TEST_F(SitesTest, SitesOfADivergedRunEndWithItsCode) {
  job_ =
      "name: \"wide\" servers: 2 consistency { workers: 2 lease_seconds: 3 } "
      "optimization { learning_rate: 1e38 } "
      "task { model: softmax train_examples: 2000 test_examples: 100 batch_size: 10 }";
  StartServers();
  StartSites();
  for (uint32_t site = 0; site < kSites; ++site) {
    const ProcessResult end = daemons_.WaitForEnd(NameOf(site));
    EXPECT_EQ(end.exit.code, static_cast<int>(ExitCode::kDiverged)) << end.log;
    EXPECT_THAT(end.log, HasSubstr("the run has diverged: "));
  }
}

TEST_F(SitesTest, ASiteHasCertificatesOfItsOwn) {
  job_ =
      "name: \"wide\" consistency { lease_seconds: 3 } task { model: softmax train_examples: "
      "200 test_examples: 100 batch_size: 10 }";
  ASSERT_EQ(daemons_.Run("cli/thinwire", {"certs", "init", ca_}).exit, ExitStatus());
  const std::string server = Issue("wide", {"server", "--server", "0"});
  const std::string site = Issue("wide", {"worker", "--worker", "0"});
  const std::string aggregator = Issue("wide-site-0", {"server", "--server", "0"});
  const std::string worker = Issue("wide-site-0", {"worker"});
  const std::string address = daemons_.StartServer("server", job_, {"--credentials", server});
  std::vector<std::string> flags = SiteFlags(0);
  flags.insert(flags.end(), {"--addresses", address, "--credentials", site});
  std::vector<std::string> wrong = flags;
  wrong.insert(wrong.end(), {"--site_credentials", server});
  EXPECT_EQ(daemons_.StartServer("wrong", job_, wrong), "");
  EXPECT_THAT(daemons_.WaitForEnd("wrong").log,
              HasSubstr("expected server-0.wide-site-0.thinwire, got server-0.wide.thinwire"));
  flags.insert(flags.end(), {"--site_credentials", aggregator});
  const std::string nearest = daemons_.StartServer(NameOf(0), job_, flags);
  ASSERT_NE(nearest, "");
  for (uint32_t w = 0; w < kSiteWorkers; ++w) {
    std::vector<std::string> of_worker = SiteFlags(0);
    of_worker.insert(of_worker.end(), {"--worker", absl::StrCat(w), "--addresses", nearest,
                                       "--credentials", worker});
    daemons_.StartWorker(NameOf(0, w), job_, of_worker);
  }
  for (uint32_t w = 0; w < kSiteWorkers; ++w) {
    const ProcessResult end = daemons_.WaitForEnd(NameOf(0, w));
    EXPECT_EQ(end.exit, ExitStatus()) << end.log;
  }
  EXPECT_EQ(daemons_.WaitForEnd(NameOf(0)).exit, ExitStatus());
}

TEST_F(SitesTest, WrongSettingsAreRefused) {
  const auto error_of = [&](const std::string& program, const std::string& job,
                            std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--config", daemons_.Write("job.textproto", job), "--addresses",
                                 "127.0.0.1:1,127.0.0.1:2"});
    const ProcessResult end = daemons_.Run(program, flags);
    EXPECT_EQ(end.exit.code, static_cast<int>(ExitCode::kConfig)) << end.log;
    return end.log;
  };
  for (const std::string program : {"server/server", "worker/worker"}) {
    EXPECT_THAT(
        error_of(program, job_, {"--site", "1", "--site_workers", "2", "--site_backup", "2"}),
        HasSubstr("--site_backup: out of range (expected below 2, the number of workers of the "
                  "site, got 2)"));
    EXPECT_THAT(
        error_of(program, job_, {"--site", "2", "--site_workers", "2"}),
        HasSubstr("--site: out of range (expected below 2, the number of workers of the job, "
                  "got 2)"));
    EXPECT_THAT(error_of(program, job_, {"--site", "1"}),
                HasSubstr("--site_workers: missing (expected the number of workers of the site)"));
  }
  EXPECT_THAT(
      error_of("server/server",
               absl::StrCat("servers: 2 consistency { workers: 2 } task { local_steps: 4 }"),
               {"--site", "1", "--site_workers", "2"}),
      HasSubstr("local_steps: not possible in a job with sites (expected 1, got 4)"));
}

TEST_F(SitesTest, AWorkerOfAnotherSiteIsRefused) {
  StartServers();
  StartAggregator(0);
  daemons_.StartWorker("other", job_,
                       {"--site", "1", "--site_workers", "2", "--addresses", aggregators_[0]});
  const ProcessResult end = daemons_.WaitForEnd("other");
  EXPECT_EQ(end.exit.code, static_cast<int>(ExitCode::kConfig)) << end.log;
  EXPECT_THAT(end.log, HasSubstr("wide-site-0"));
}

}  // namespace
}  // namespace thinwire
