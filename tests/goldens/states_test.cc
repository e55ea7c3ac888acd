// Opens the state directories and model files that earlier builds have written
// (tests/goldens/states):
//
//   states/1/log/job.textproto      the job file
//   states/1/log/server-0 ...       the folders of two servers
//   states/1/log/worker-0 ...       the folders of two workers, with residuals and loss scale
//   states/1/log/model.safetensors  `thinwire checkpoint export` of a state that was stopped
//   states/1/checksums.txt          for each state: the exported parameters, and those of the last
//                                   step of a run that goes on from a copy of it
//
// Each folder states/N was written by one earlier build and never changes. `update.sh states N`
// writes a new one. Servers are real processes; the clients of the workers are in this process.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/encode/worker_folder.h"
#include "client/transport/grpc_transport.h"
#include "common/files/crc32c.h"
#include "tests/processes/daemons.h"
#include "tests/goldens/golden_file.h"
#include "tests/goldens/golden_job.h"
#include "worker/trainer/loss_scale.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

constexpr LossScale::State kLossScale = {.value = 1024, .good_steps = 7};

// The number of rows of the matrix; small, so that the files are small.
const std::vector<TensorShape>& Tensors() {
  static const auto& tensors = *new std::vector<TensorShape>(GoldenTensors(10));
  return tensors;
}

// How the processes of a part of a run end.
enum class End {
  kStop,  // the workers save their state and leave; the servers are stopped in order
  kKill,  // the workers save their state; all processes are killed
};

struct Part {
  Step last;
  End end = End::kStop;
  bool changes_mode = false;  // an operator asks for mode backup at the end
};

struct State {
  std::string name;
  std::string fields;  // of the job file
  std::vector<Part> parts;
};

// The states of a new folder states/N.
std::vector<State> NewStates() {
  constexpr char kConsistency[] =
      "servers: 2\nconsistency { mode: sync ordered_fold: true workers: 2 lease_seconds: 3 }\n";
  const auto make = [&](const std::string& name, const std::string& fields,
                        std::vector<Part> parts) {
    return State{name, absl::StrCat("name: \"", name, "\"\n", kConsistency, fields),
                 std::move(parts)};
  };
  const std::vector<Part> stopped = {{Step{3}}, {Step{6}}, {Step{9}}};
  const std::vector<Part> killed = {{Step{3}}, {Step{6}, End::kKill}, {Step{9}, End::kKill}};
  return {
      // Slots, moving averages, lazy slots and published parameters.
      make("checkpoint",
           "optimization { optimizer: momentum lazy_slots: true parameter_average: 0.9 }\n"
           "compression { push: topk density: 0.05 pull: delta }\nrecovery { durability: "
           "checkpoint }\n",
           stopped),
      // A checkpoint and two later segments of the log.
      make("log",
           "optimization { optimizer: adam weight_decay: 0.01 }\n"
           "compression { push: fp8_e5m2 pull: delta_fp8_e5m2 }\nrecovery { durability: log }\n",
           killed),
      // The whole log from the first event, with sparse payloads.
      make("whole-log",
           "optimization { optimizer: adagrad }\ncompression { push: topk density: 0.05 "
           "topk_values: int8 }\n"
           "recovery { durability: log keep_log: true }\n",
           {{Step{4}, End::kKill}, {Step{9}, End::kKill}}),
      // Unselected values at the servers, and momenta at the workers.
      make("gtopk",
           "optimization { gradient_selection: gtopk selection_density: 0.05 }\n"
           "compression { push: topk density: 0.05 momentum_correction: true pull: delta }\n"
           "recovery { durability: log }\n",
           killed),
      // Selected indices, of which the servers have not told the workers.
      make("gtopk-workers",
           "optimization { gradient_selection: gtopk selection_density: 0.05 selection_rest: "
           "workers }\n"
           "compression { push: topk density: 0.05 pull: delta }\nrecovery { durability: "
           "checkpoint }\n",
           stopped),
      // A changed mode, and one that is announced, also in the file `lead`.
      make("mode", "compression { push: onebit }\nrecovery { durability: checkpoint }\n",
           {{Step{3}, End::kStop, /*changes_mode=*/true}, {Step{6}}}),
      make("next-mode", "compression { push: int8 }\nrecovery { durability: log }\n",
           {{Step{3}}, {Step{6}, End::kStop, /*changes_mode=*/true}}),
  };
}

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns the CRC-32C of the values in a safetensors file, the tensors in the order of their names.
uint32_t ModelCrc(const std::string& path) {
  const std::string file = ReadBytes(path);
  uint64_t header_bytes = 0;
  if (file.size() < 8) return 0;
  memcpy(&header_bytes, file.data(), 8);
  const auto header = nlohmann::json::parse(file.substr(8, header_bytes), nullptr, false);
  EXPECT_TRUE(header.is_object()) << path;
  uint32_t crc = 0;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const auto values = std::as_bytes(std::span(file)).subspan(8 + header_bytes);
    const uint64_t first = tensor["data_offsets"][0], last = tensor["data_offsets"][1];
    crc = Crc32c(values.subspan(first, last - first), crc);
  }
  return crc;
}

class StatesTest : public testing::Test {
 protected:
  // Runs PART of the job in the state directory DIR. Returns the checksum of its last parameters.
  uint32_t Run(const std::string& job, const std::string& dir, const Part& part) {
    const JobSpec spec = GoldenSpec(job);
    std::vector<std::string> addresses(2, "127.0.0.1:0");
    for (const uint32_t server : {1u, 0u}) {
      daemons_.StartServer(server, job, addresses, {"--state_dir", dir});
    }
    if (HasFatalFailure()) return 0;
    std::vector<std::unique_ptr<GrpcTransport>> transports;
    GoldenWorkers workers;
    for (uint32_t w = 0; w < spec.rule.workers; ++w) {
      transports.push_back(std::make_unique<GrpcTransport>(addresses));
      workers.push_back(
          std::make_unique<GoldenWorker>(spec, Tensors(), WorkerId{w}, *transports[w], dir));
    }
    std::vector<std::thread> threads;
    for (const auto& worker : workers) threads.emplace_back([&worker] { worker->Join(); });
    for (std::thread& thread : threads) thread.join();
    if (HasFatalFailure()) return 0;
    starts_.clear();
    for (const auto& worker : workers) starts_.push_back(worker->client().state().restored());
    TrainInOrder(spec, workers, part.last);
    if (part.changes_mode) {
      const ProcessResult mode =
          daemons_.Run("cli/thinwire", {"mode", "--addresses", absl::StrJoin(addresses, ","),
                                        "--set", "backup", "--backup", "1"});
      EXPECT_EQ(mode.exit, ExitStatus()) << mode.log << mode.output;
    }
    const auto masters = workers[0]->client().masters().Read();
    EXPECT_TRUE(masters.ok()) << masters.status();
    for (uint32_t w = 0; w < workers.size(); ++w) {
      const auto save_scale = [&](const std::string& path) {
        return WriteLossScale({LossScalePath(path), spec.name, WorkerId{w}}, kLossScale);
      };
      const absl::Status saved = workers[w]->client().state().Save(save_scale);
      EXPECT_TRUE(saved.ok()) << saved;
    }
    if (part.end == End::kStop) {
      for (const auto& worker : workers) EXPECT_TRUE(worker->client().Leave().ok());
    }
    for (const std::string name : {"server0", "server1"}) {
      daemons_.Signal(name, part.end == End::kStop ? SIGTERM : SIGKILL);
      const ExitStatus exit = daemons_.WaitForEnd(name).exit;
      if (part.end == End::kStop) {
        EXPECT_EQ(exit, ExitStatus()) << name;
      }
    }
    return masters.ok() ? ParametersCrc(*masters) : 0;
  }

  // Runs `thinwire checkpoint` and returns its output.
  std::string Checkpoint(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "checkpoint");
    const ProcessResult run = daemons_.Run("cli/thinwire", arguments);
    EXPECT_EQ(run.exit, ExitStatus()) << absl::StrJoin(arguments, " ") << "\n"
                                      << run.log << run.output;
    return run.output;
  }

  // Returns the checksum of the parameters that `thinwire checkpoint export` writes.
  uint32_t Exported(const std::string& dir) {
    const std::string file = absl::StrCat(daemons_.folder(), "/exported", count_++, ".safetensors");
    Checkpoint({"export", dir, "--masters", "--out", file});
    return ModelCrc(file);
  }

  // Checks the state in the folder DIR, which STATE has as its name, and returns its line of the
  // checksums.
  std::string Check(const std::string& dir, const std::string& state) {
    const std::string job = ReadBytes(dir + "/job.textproto");
    const std::string copy = absl::StrCat(daemons_.folder(), "/copy", count_++);
    fs::copy(dir, copy, fs::copy_options::recursive);
    std::string exported = "none    ";
    if (fs::exists(dir + "/server-0/LATEST")) {
      const std::string list = Checkpoint({"list", copy});
      EXPECT_TRUE(absl::StrContains(list, "step")) << list;
      Checkpoint({"verify", copy});
      exported = absl::StrFormat("%08x", Exported(copy));
    }
    const std::string model = dir + "/model.safetensors";
    if (fs::exists(model)) {
      // The exported file also begins a new run.
      const std::string imported = absl::StrCat(daemons_.folder(), "/imported", count_++);
      Checkpoint(
          {"import", "--config", dir + "/job.textproto", "--from", model, "--state_dir", imported});
      EXPECT_EQ(ModelCrc(model), Exported(imported)) << state;
      EXPECT_EQ(absl::StrFormat("%08x", ModelCrc(model)), exported) << state;
    }
    for (const uint32_t w : {0u, 1u}) {
      const auto folder = client::WorkerFolder::Open(copy, WorkerId{w});
      EXPECT_TRUE(folder.ok()) << folder.status();
      const std::string path = folder->PathOf(folder->Steps()->back());
      const auto scale = ReadLossScale({LossScalePath(path), GoldenSpec(job).name, WorkerId{w}});
      EXPECT_TRUE(scale.ok()) << scale.status();
      if (scale.ok()) {
        EXPECT_EQ(*scale, kLossScale);
      }
    }
    const uint32_t last = Run(job, copy, {kGoldenSteps});
    for (const std::string& start : starts_) {
      EXPECT_TRUE(absl::StrContains(start, ", restored")) << state << ": " << start;
    }
    return absl::StrFormat("%-14s exported %s, last step %08x\n", state, exported, last);
  }

  Daemons daemons_;
  int count_ = 0;
  std::vector<std::string> starts_;  // StateSaver::restored() of the workers of the last run
};

// Writes a new folder states/N if the environment variable THINWIRE_NEW_STATES is N.
TEST_F(StatesTest, NewStatesAreWrittenOnDemand) {
  const char* number = std::getenv("THINWIRE_NEW_STATES");
  if (number == nullptr || UpdatedFolder().empty()) GTEST_SKIP() << "no new states are wanted";
  const std::string folder = absl::StrCat(UpdatedFolder(), "/states/", number);
  ASSERT_FALSE(fs::exists(folder))
      << folder << ": exists, and the states of an earlier build never change";
  std::string checksums;
  for (const State& state : NewStates()) {
    const std::string dir = absl::StrCat(folder, "/", state.name);
    fs::create_directories(dir);
    std::ofstream(dir + "/job.textproto") << state.fields;
    for (const Part& part : state.parts) Run(state.fields, dir, part);
    if (state.parts.back().end == End::kStop) {
      Checkpoint({"export", dir, "--masters", "--out", dir + "/model.safetensors"});
    }
    absl::StrAppend(&checksums, Check(dir, state.name));
    ASSERT_FALSE(HasFailure()) << state.name;
  }
  std::ofstream(folder + "/checksums.txt") << checksums;
}

TEST_F(StatesTest, ServersAndWorkersGoOnFromTheFilesOfEarlierBuilds) {
  const std::string root = absl::StrCat(GoldenFolder(), "/states");
  size_t count = 0;
  std::vector<fs::path> versions(fs::directory_iterator(root), {});
  for (const fs::path& version : versions) {
    std::string checksums;
    for (const std::string& line : std::vector<std::string>(
             absl::StrSplit(ReadBytes(version / "checksums.txt"), '\n', absl::SkipEmpty()))) {
      const std::string state = line.substr(0, line.find(' '));
      absl::StrAppend(&checksums, Check(version / state, state));
      ++count;
    }
    EXPECT_EQ(checksums, ReadBytes(version / "checksums.txt")) << version;
  }
  EXPECT_GE(count, 6u);
}

}  // namespace
}  // namespace thinwire
