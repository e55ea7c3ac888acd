// race_worker is a synthetic worker without a model. It pushes gradients of given shapes, filled
// with pseudorandom numbers, and measures its rounds. A round lasts from the first gradient until
// all parameters of the next step have arrived. bench/race.sh runs race_worker with real servers.
//
//   race_worker --config job.textproto --worker 0 --addresses a:7000,b:7000
//       --tensors 25*1024x1024,25*1024 --rounds 8
//
// Prints one JSON line: the duration of each round in seconds, the chosen push codecs, and the mean
// payload bytes of one round in each direction.
//
// The gradients of a tensor are slices of one long array. Successive rounds use different slices,
// so that a sparse codec selects different entries in each round, as in training.
#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/client.h"
#include "client/options/job_client_options.h"
#include "client/transport/grpc_transport.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/memory/huge_page_arena.h"
#include "common/time/thread_executor.h"
#include "config/addresses.h"
#include "config/job.h"
#include "config/job_text.h"

namespace thinwire {
namespace {

constexpr int kUsage = static_cast<int>(ExitCode::kUsage);
constexpr int kUnavailable = static_cast<int>(ExitCode::kUnavailable);

struct RaceOptions {
  std::string config;
  uint32_t worker = 0;
  std::string addresses;
  std::string tensors = "25*1024x1024";
  uint32_t rounds = 8;
  uint32_t warm_rounds = 2;  // untimed first rounds; they fill memory pools and residuals
  double compute_seconds = 0;
};

// Parses a list of tensors: "25*1024x1024,4*100" means 25 matrices and 4 vectors.
absl::StatusOr<std::vector<TensorShape>> ParseTensors(const std::string& text) {
  std::vector<TensorShape> tensors;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<std::string> sides = absl::StrSplit(part, absl::MaxSplits('*', 1));
    uint32_t count = 1;
    bool ok = sides.size() == 1 || absl::SimpleAtoi(sides[0], &count);
    TensorShape tensor;
    for (const absl::string_view side : absl::StrSplit(sides.back(), 'x')) {
      tensor.shape.push_back(0);
      ok = ok && absl::SimpleAtoi(side, &tensor.shape.back());
    }
    if (!ok) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--tensors: not a list of shapes (expected such as 25*1024x1024,4*100, got ", text, ")"));
    }
    for (uint32_t i = 0; i < count; ++i) {
      tensor.name = absl::StrCat("t", tensors.size());
      tensors.push_back(tensor);
    }
  }
  return tensors;
}

// The gradients of all tensors. Consecutive steps use different slices of the arrays.
class Gradients {
 public:
  Gradients(const std::vector<TensorShape>& tensors, uint32_t seed) {
    std::minstd_rand random(seed + 1);
    std::normal_distribution<float> normal(0, 1e-3f);
    // Drawing random numbers is slow, so the arrays repeat kDrawn numbers. kDrawn is larger than a
    // shard, so no number repeats within a shard. kDrawn is also prime, so successive shards begin
    // at different positions of the sequence.
    std::vector<float> drawn(kDrawn);
    for (float& value : drawn) value = normal(random);
    for (const TensorShape& tensor : tensors) {
      const size_t size = tensor.value_count() + kPlaces * kApart;
      auto array = std::make_shared<std::vector<float>>(size);
      for (size_t i = 0; i < size; ++i) (*array)[i] = drawn[(i + arrays_.size() * kApart) % kDrawn];
      arrays_.push_back(std::move(array));
      counts_.push_back(tensor.value_count());
    }
  }

  size_t size() const { return arrays_.size(); }
  std::span<const float> At(Step step, size_t tensor) const {
    return std::span(*arrays_[tensor]).subspan(step.value % kPlaces * kApart, counts_[tensor]);
  }
  const std::shared_ptr<const std::vector<float>>& owner(size_t tensor) const {
    return arrays_[tensor];
  }

 private:
  static constexpr size_t kDrawn = 1000003;
  static constexpr size_t kPlaces = 7;
  static constexpr size_t kApart = 4096;

  std::vector<std::shared_ptr<const std::vector<float>>> arrays_;
  std::vector<size_t> counts_;
};

// Runs one round and returns the next step to run. COMPUTE is the simulated duration of the
// backward pass; the gradients become ready at even intervals during the pass.
absl::StatusOr<Step> Round(Client& client, const Gradients& gradients, Step step,
                           absl::Duration compute) {
  client.BeginStep(step, 1);
  const absl::Duration share = compute / static_cast<int64_t>(gradients.size());
  for (auto t = static_cast<uint32_t>(gradients.size()); t-- > 0;) {
    if (share > absl::ZeroDuration()) absl::SleepFor(share);
    client.Ready(t, gradients.At(step, t), gradients.owner(t));
  }
  RETURN_IF_ERROR(client.EndStep());
  ASSIGN_OR_RETURN(const Step next, client.NextStep());
  RETURN_IF_ERROR(client.WaitAll());
  return next;
}

nlohmann::ordered_json ChoicesJson(const Client& client) {
  auto choices = nlohmann::ordered_json::array();
  for (const GroupCodec& chosen : client.choices()) {
    choices.push_back(
        {{"group", chosen.group}, {"codec", chosen.codec}, {"reason", chosen.reason}});
  }
  return choices;
}

absl::StatusOr<nlohmann::ordered_json> Race(const RaceOptions& race) {
  ASSIGN_OR_RETURN(JobText text, ReadJobFile(race.config));
  ASSIGN_OR_RETURN(const JobSpec job, CheckJob(text.config, text.places));
  ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                   ParseAddresses(race.addresses, job.server_count));
  ASSIGN_OR_RETURN(const std::vector<TensorShape> tensors, ParseTensors(race.tensors));
  const uint64_t steps = race.warm_rounds + race.rounds;
  ClientOptions options = MakeClientOptions(job, {.worker = WorkerId{race.worker},
                                                  .planned_examples = steps * job.rule.workers,
                                                  .planned_steps = steps});
  Threads threads;
  GrpcTransport transport(addresses);
  text.config.clear_task();
  options.config = text.config;
  HugePageArena arena;
  options.memory = &arena;
  ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                   Client::Make(std::move(options), tensors, transport, threads));
  const Gradients gradients(tensors, race.worker);
  // All workers use the same initial parameters.
  const Gradients parameters(tensors, 0);
  std::vector<std::span<const float>> initial;
  for (size_t t = 0; t < tensors.size(); ++t) initial.push_back(parameters.At(Step{0}, t));
  ASSIGN_OR_RETURN(Step step, client->Join(initial));
  RETURN_IF_ERROR(client->WaitAll());

  WorkerCounters warm;
  std::vector<double> seconds;
  for (uint64_t i = 0; i < steps; ++i) {
    if (i == race.warm_rounds) warm = client->counters();
    const absl::Time begin = threads.Now();
    ASSIGN_OR_RETURN(step, Round(*client, gradients, step, absl::Seconds(race.compute_seconds)));
    if (i >= race.warm_rounds) seconds.push_back(absl::ToDoubleSeconds(threads.Now() - begin));
  }
  const WorkerCounters all = client->counters();
  RETURN_IF_ERROR(client->Settle().status());
  RETURN_IF_ERROR(client->Leave());
  return nlohmann::ordered_json{
      {"worker", race.worker},
      {"push_codecs", ChoicesJson(*client)},
      {"seconds", seconds},
      {"push_bytes", (all.push_bytes_encoded() - warm.push_bytes_encoded()) / race.rounds},
      {"pull_bytes", (all.pull_bytes_encoded() - warm.pull_bytes_encoded()) / race.rounds}};
}

int Run(const RaceOptions& race) {
  const absl::StatusOr<nlohmann::ordered_json> result = Race(race);
  if (!result.ok()) {
    std::cerr << "race_worker: " << result.status().message() << std::endl;
    return absl::IsInvalidArgument(result.status()) ? kUsage : kUnavailable;
  }
  std::cout << *result << std::endl;
  return 0;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  CLI::App app("A synthetic worker that pushes gradients of given sizes and times its rounds.");
  thinwire::RaceOptions race;
  app.add_option("--config", race.config, "The job file (proto/job.proto in text format)")
      ->required();
  app.add_option("--worker", race.worker, "The number of this worker")->capture_default_str();
  app.add_option("--addresses", race.addresses, "host:port of every server, separated by commas")
      ->required();
  app.add_option("--tensors", race.tensors, "Shapes of the tensors, such as 25*1024x1024,4*100")
      ->capture_default_str();
  app.add_option("--rounds", race.rounds, "Number of timed rounds")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1000000u));
  app.add_option("--warm_rounds", race.warm_rounds, "Number of untimed rounds before them")
      ->capture_default_str();
  app.add_option("--compute_seconds", race.compute_seconds,
                 "Simulated duration of a round's backward pass")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : thinwire::kUsage;
  }
  return thinwire::Run(race);
}
