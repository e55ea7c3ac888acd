// Compares the final parameters of many jobs with tests/goldens/checksums.txt, bit by bit: every
// mode with every push codec, and other settings in mode sync. Each job runs with every durability,
// which must not change the parameters, and its servers are then started again and must have the
// same parameters. Real clients and real server jobs run in this process.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/notification.h"
#include "client/testing/in_process_transport.h"
#include "common/codec/codec.h"
#include "common/time/clock.h"
#include "kernels/on_every_target.h"
#include "server/durable/testing/faulty_files.h"
#include "server/job/job.h"
#include "server/job/job_threads.h"
#include "server/job/make_job.h"
#include "server/job/testing/direct_peers.h"
#include "tests/goldens/golden_file.h"
#include "tests/goldens/golden_job.h"
#include "tests/clusters/job_server.h"

namespace thinwire {
namespace {

constexpr uint32_t kServers = 2;
constexpr Durability kDurabilities[] = {Durability::kNone, Durability::kCheckpoint,
                                        Durability::kLog};

// Two shards have parts of the matrix.
const std::vector<TensorShape>& Tensors() {
  static const auto& tensors = *new std::vector<TensorShape>(GoldenTensors(100));
  return tensors;
}

// The servers of a job in this process, with a file system in memory.
class Servers {
 public:
  explicit Servers(const JobSpec& spec) : spec_(spec) {
    for (uint32_t s = 0; s < kServers; ++s) EXPECT_TRUE(files_.MakeFolder(Folder(s)).ok());
    EXPECT_TRUE(files_.SyncFolder("/").ok());
    Start();
  }

  Job& job(uint32_t server) { return *jobs_[server]; }

  // Ends the servers, with durability checkpoint in order and with durability log as a kill does,
  // and starts them again.
  void Restart() {
    if (spec_.recovery.durability == Durability::kCheckpoint) {
      for (const auto& job : jobs_) {
        absl::Notification stopped;
        job->Stop([&stopped] { stopped.Notify(); });
        stopped.WaitForNotification();
      }
    } else {
      files_.Crash();
    }
    jobs_.clear();
    files_.Restart();
    Start();
  }

  uint32_t Crc() {
    std::map<std::string, std::vector<float>> values;
    for (const TensorShape& tensor : Tensors()) values[tensor.name].resize(tensor.value_count());
    size_t count = 0;
    for (const auto& job : jobs_) {
      bool more = true;
      for (size_t place = 0; more; ++place) {
        absl::Notification told;
        job->Masters({}, place, [&](absl::StatusOr<std::vector<MastersChunk>> reply) {
          EXPECT_TRUE(reply.ok()) << reply.status();
          more = reply.ok() && !reply->empty();
          for (size_t i = 0; more && i < reply->size(); ++i) {
            const MastersChunk& chunk = (*reply)[i];
            memcpy(values.at(chunk.tensor()).data() + chunk.offset(), chunk.values().data(),
                   chunk.values().size());
            count += chunk.values().size() / sizeof(float);
          }
          told.Notify();
        });
        told.WaitForNotification();
      }
    }
    EXPECT_EQ(count, 8148u);
    std::vector<std::vector<float>> tensors;
    for (const TensorShape& tensor : Tensors()) tensors.push_back(values.at(tensor.name));
    return ParametersCrc(tensors);
  }

 private:
  static std::string Folder(uint32_t server) { return absl::StrCat("/server-", server); }

  void Start() {
    ++starts_;
    for (uint32_t s = 0; s < kServers; ++s) {
      std::unique_ptr<Peers> peers;
      if (s == 0) {
        peers = std::make_unique<DirectPeers>([this](ServerId id) {
          return id.value < jobs_.size() ? jobs_[id.value].get() : nullptr;
        });
      }
      ServerSettings settings;
      settings.server = ServerId{s};
      settings.epoch = Epoch{starts_};
      if (spec_.recovery.durability != Durability::kNone) {
        settings.durable =
            DurableOptions{.files = &files_, .folder = Folder(s), .awaits_rollback = false};
      }
      auto job = MakeJob(spec_, settings, clock_, threads_.executors(), std::move(peers));
      ASSERT_TRUE(job.ok()) << job.status();
      jobs_.push_back(*std::move(job));
    }
  }

  const JobSpec spec_;
  FaultyFiles files_;
  ManualClock clock_;
  JobThreads threads_{1};
  uint64_t starts_ = 0;
  std::vector<std::unique_ptr<Job>> jobs_;
};

// Returns the checksum of the parameters after a run of SPEC.
uint32_t RunJob(const JobSpec& spec) {
  Servers servers(spec);
  struct Link {
    std::vector<std::unique_ptr<JobServer>> servers;
    std::unique_ptr<InProcessTransport> transport;
  };
  std::vector<Link> links(spec.rule.workers);
  GoldenWorkers workers;
  for (uint32_t w = 0; w < links.size(); ++w) {
    std::vector<InProcessServer*> addresses;
    for (uint32_t s = 0; s < kServers; ++s) {
      addresses.push_back(
          links[w].servers.emplace_back(std::make_unique<JobServer>(servers.job(s))).get());
    }
    links[w].transport = std::make_unique<InProcessTransport>(std::move(addresses));
    workers.push_back(
        std::make_unique<GoldenWorker>(spec, Tensors(), WorkerId{w}, *links[w].transport));
  }
  for (const auto& worker : workers) worker->Join();
  TrainInOrder(spec, workers, kGoldenSteps);
  for (const auto& worker : workers) EXPECT_TRUE(worker->client().Leave().ok());
  const uint32_t crc = servers.Crc();
  workers.clear();
  links.clear();
  if (spec.recovery.durability != Durability::kNone) {
    servers.Restart();
    EXPECT_EQ(servers.Crc(), crc) << "the restarted servers have other parameters";
  }
  return crc;
}

// Returns the checksum of the job with FIELDS, which must be the same with every durability that
// ALLOWS lists.
uint32_t ChecksumOf(const std::string& fields, std::span<const Durability> durabilities) {
  uint32_t crc = 0;
  bool first = true;
  for (const Durability durability : durabilities) {
    JobSpec spec = GoldenSpec(absl::StrCat("servers: 2\n", fields));
    spec.recovery.durability = durability;
    const Problems problems = spec.Validate();
    EXPECT_TRUE(problems.ToStatus().ok()) << problems.ToStatus();
    const uint32_t got = RunJob(spec);
    if (first) crc = got;
    EXPECT_EQ(got, crc) << fields << "\nwith durability " << static_cast<int>(durability)
                        << ": other parameters than with durability none";
    first = false;
  }
  return crc;
}

struct Case {
  std::string name;
  std::string fields;
  bool has_log = true;  // the job may have an event log
};

std::string Consistency(const std::string& mode) {
  return absl::StrCat("consistency { workers: 3 ", mode, " }\n");
}

constexpr char kSync[] = "mode: sync ordered_fold: true";

// Every mode with every push codec.
std::vector<Case> CodecCases() {
  const std::pair<std::string, std::string> modes[] = {{"sync", kSync},
                                                       {"backup", "mode: backup backup: 1"},
                                                       {"ssp", "mode: ssp slack: 2"},
                                                       {"async", "mode: async"}};
  std::vector<Case> cases;
  for (const auto& [mode, text] : modes) {
    for (const CodecRow& row : CodecTable()) {
      const std::string density = row.sparse == nullptr ? "" : " density: 0.05";
      cases.push_back({absl::StrFormat("%-7s%s", mode, std::string(row.name)),
                       absl::StrCat(Consistency(text),
                                    "optimization { learning_rate: 0.05 }\ncompression { push: ",
                                    std::string(row.name), density, " }")});
    }
  }
  return cases;
}

// Other settings, each in mode sync unless it names a mode.
std::vector<Case> SettingCases() {
  std::vector<Case> cases;
  const auto add = [&](const std::string& fields, bool has_log = true,
                       const std::string& mode = kSync) {
    cases.push_back({mode == kSync ? fields : absl::StrCat(mode, " ", fields),
                     absl::StrCat(Consistency(mode), fields), has_log});
  };
  const std::string pull_names[] = {"fp16", "bf16", "fp8_e5m2", "fp8_e4m3", "int8", "delta"};
  for (const std::string& name : pull_names) add(absl::StrCat("compression { pull: ", name, " }"));
  for (const std::string_view name : DeltaCodecNames()) {
    const std::string density = IsSparse(ParseCodec(name)->id) ? " pull_density: 0.05" : "";
    add(absl::StrCat("compression { pull: delta_", std::string(name), density, " }"));
  }
  for (const std::string optimizer :
       {"momentum", "nesterov", "adam", "adamw", "adagrad", "lion", "lars", "lamb", "sign_sgd"}) {
    add(absl::StrCat("optimization { optimizer: ", optimizer, " weight_decay: 0.01 }"));
  }
  for (const std::string schedule :
       {"step decay_at: 0.5", "polynomial power: 2", "cosine warmup: 0.25"}) {
    add(absl::StrCat("optimization { schedule: ", schedule, " }"));
  }
  add("optimization { optimizer: momentum parameter_average: 0.9 }");
  add("optimization { clip_norm: 20 }", /*has_log=*/false);
  add("compression { gradient_clip: 20 }");
  for (const std::string values : {"fp16", "int8", "fp8_e4m3", "lloyd_4"}) {
    add(absl::StrCat("compression { push: topk density: 0.05 topk_values: ", values,
                     " topk_indices: golomb_rice }"));
  }
  add("compression { push: powersgd powersgd_rank: 3 topk_values: bf16 }");
  add("compression { push: topk density: 0.02 density_warmup: 0.5 warmup_density: 0.25 }");
  add("compression { push: topk density: 0.05 momentum_correction: true pull: delta }");
  add("compression { push: int8 first_push: fp32 first_push_part: 0.5 }");
  add("compression { push: onebit error_feedback: false }");
  add("optimization { optimizer: sign_sgd learning_rate: 0.002 } "
      "compression { push: dct_topk density: 0.05 residual_decay: 0.9 }");
  add("optimization { optimizer: momentum lazy_slots: true } compression { push: topk density: "
      "0.05 pull: delta }");
  add("optimization { optimizer: adam lazy_slots: true weight_decay: 0.01 } "
      "compression { push: topk density: 0.05 pull: delta }");
  for (const std::string rest : {"server", "workers"}) {
    add(absl::StrCat(
        "optimization { gradient_selection: gtopk selection_density: 0.05 selection_rest: ", rest,
        " } compression { push: topk density: 0.05 pull: delta }"));
  }
  add("parameter_group { match: \"conv*\" learning_rate_factor: 0.5 optimizer: adam push: bf16 } "
      "compression { push: fp8_e5m2 }");
  for (const std::string policy : {"drop staleness_bound: 1", "scale"}) {
    add("compression { push: fp8_e5m2 }", true,
        absl::StrCat("mode: async staleness_policy: ", policy));
  }
  add("compression { pull: delta }", false, "mode: ssp slack: 2 staleness_policy: dcasgd");
  add("compression { push: fp8_e5m2 pull: bf16 }", true, "mode: async fold_every: 2");
  return cases;
}

TEST(ChecksumsTest, EveryModeAndCodecGivesTheParametersOfEarlierBuilds) {
  std::string table;
  for (const Case& c : CodecCases()) {
    const uint32_t crc = ChecksumOf(c.fields, kDurabilities);
    absl::StrAppendFormat(&table, "%08x  %s\n", crc, c.name);
  }
  for (const Case& c : SettingCases()) {
    const uint32_t crc = ChecksumOf(c.fields, std::span(kDurabilities).first(c.has_log ? 3 : 2));
    absl::StrAppendFormat(&table, "%08x  %s\n", crc, c.name);
  }
  ExpectGolden("checksums.txt", GoldenKind::kPermanent, table);
}

TEST(ChecksumsTest, NoInstructionSetOfThisMachineGivesOtherParameters) {
  int count = 0;
  kernels::OnEveryTarget([&] {
    for (const Case& c : CodecCases()) {
      if (!absl::StartsWith(c.name, "sync")) continue;
      const uint32_t crc = ChecksumOf(c.fields, std::span(kDurabilities).first(1));
      EXPECT_TRUE(absl::StrContains(ReadGolden("checksums.txt"),
                                    absl::StrFormat("%08x  %s\n", crc, c.name)))
          << c.name;
      ++count;
    }
  });
  EXPECT_GE(count, 30);
}

}  // namespace
}  // namespace thinwire
