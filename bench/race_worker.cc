// race_worker: a worker that trains nothing. It pushes gradients of the sizes it is told, fixed
// random numbers, and times its rounds: from the first gradient until every parameter of the next
// step is there. bench/race.sh runs it beside real servers.
//
//   race_worker --config worker.textproto --tensors 25*1024x1024,25*1024 --rounds 8
//
// Prints one JSON line: the rounds' seconds, and the payload bytes of one round each way.
//
// Of each tensor there is one long array; every round reads it from another place, so that what a
// sparse codec sends changes from round to round as it would in training.
#include <glog/logging.h>
#include <grpcpp/security/credentials.h>

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
#include "client/grpc_transport.h"
#include "common/clock.h"
#include "common/huge_page_arena.h"
#include "proto/config.pb.h"
#include "proto/config_text.h"
#include "worker/client_options.h"

namespace thinwire {
namespace {

constexpr int kUsage = 64;
constexpr int kUnavailable = 69;

struct RaceOptions {
  std::string tensors = "25*1024x1024";
  uint32_t rounds = 8;
  uint32_t warm_rounds = 2;  // fill pools, windows and residuals; not told
  double compute_seconds = 0;
};

// "25*1024x1024,4*100": 25 matrices and 4 vectors.
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
      return absl::InvalidArgumentError(
          absl::StrCat("tensors: want such as 25*1024x1024,4*100, got ", text));
    }
    for (uint32_t i = 0; i < count; ++i) {
      tensor.name = absl::StrCat("t", tensors.size());
      tensors.push_back(tensor);
    }
  }
  return tensors;
}

// A step's gradients of all tensors, other ones for each step.
class Gradients {
 public:
  Gradients(const std::vector<TensorShape>& tensors, uint32_t seed) {
    std::minstd_rand random(seed + 1);
    std::normal_distribution<float> normal(0, 1e-3f);
    // Numbers are dear to draw: each array repeats a stretch of a length that no shard has.
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

// One round: the step after STEP.
absl::StatusOr<Step> Round(Client& client, const Gradients& gradients, Step step,
                           absl::Duration compute) {
  client.BeginStep(step, 1);
  const absl::Duration share = compute / static_cast<int64_t>(gradients.size());
  for (auto t = static_cast<uint32_t>(gradients.size()); t-- > 0;) {
    if (share > absl::ZeroDuration()) absl::SleepFor(share);
    client.Ready(t, gradients.At(step, t), gradients.owner(t));
  }
  if (absl::Status status = client.EndStep(); !status.ok()) return status;
  const absl::StatusOr<Step> next = client.NextStep();
  if (!next.ok()) return next;
  if (absl::Status status = client.WaitAll(); !status.ok()) return status;
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

absl::StatusOr<nlohmann::ordered_json> Race(const WorkerConfig& config, const RaceOptions& race) {
  absl::StatusOr<std::vector<TensorShape>> tensors = ParseTensors(race.tensors);
  if (!tensors.ok()) return tensors.status();
  const uint64_t steps = race.warm_rounds + race.rounds;
  absl::StatusOr<ClientOptions> options =
      MakeClientOptions(config, {.examples = steps * config.workers(), .steps = steps});
  if (!options.ok()) return options.status();
  GrpcTransport transport({config.servers().begin(), config.servers().end()},
                          grpc::InsecureChannelCredentials());
  HugePageArena arena;
  options->memory = &arena;
  const absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Make(*std::move(options), *tensors, transport);
  if (!client.ok()) return client.status();
  const Gradients gradients(*tensors, config.worker());
  // Every worker brings the same parameters.
  const Gradients parameters(*tensors, 0);
  std::vector<std::span<const float>> initial;
  for (size_t t = 0; t < tensors->size(); ++t) initial.push_back(parameters.At(Step{0}, t));
  absl::StatusOr<Step> step = (*client)->Join(initial);
  if (!step.ok()) return step.status();
  if (absl::Status status = (*client)->WaitAll(); !status.ok()) return status;

  SteadyClock clock;
  ClientStatistics warm;
  std::vector<double> seconds;
  for (uint64_t i = 0; i < steps; ++i) {
    if (i == race.warm_rounds) warm = (*client)->statistics();
    const absl::Time begin = clock.Now();
    step = Round(**client, gradients, *step, absl::Seconds(race.compute_seconds));
    if (!step.ok()) return step.status();
    if (i >= race.warm_rounds) seconds.push_back(absl::ToDoubleSeconds(clock.Now() - begin));
  }
  const ClientStatistics all = (*client)->statistics();
  if (absl::Status status = (*client)->Leave(); !status.ok()) return status;
  return nlohmann::ordered_json{
      {"worker", config.worker()},
      {"push_codecs", ChoicesJson(**client)},
      {"seconds", seconds},
      {"push_bytes", (all.push_bytes_encoded - warm.push_bytes_encoded) / race.rounds},
      {"pull_bytes", (all.pull_bytes_encoded - warm.pull_bytes_encoded) / race.rounds}};
}

int Run(const std::string& config_path, const RaceOptions& race) {
  const absl::StatusOr<WorkerConfig> config = ReadConfig<WorkerConfig>(config_path);
  if (!config.ok()) {
    std::cerr << "race_worker: " << config.status().message() << std::endl;
    return kUsage;
  }
  const absl::StatusOr<nlohmann::ordered_json> result = Race(*config, race);
  if (!result.ok()) {
    std::cerr << "race_worker: " << result.status().message() << std::endl;
    return kUnavailable;
  }
  std::cout << *result << std::endl;
  return 0;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  CLI::App app("A worker that pushes gradients of given sizes and times its rounds.");
  std::string config_path;
  thinwire::RaceOptions race;
  app.add_option("--config", config_path, "A WorkerConfig in protobuf's text format")->required();
  app.add_option("--tensors", race.tensors, "Such as 25*1024x1024,4*100")->capture_default_str();
  app.add_option("--rounds", race.rounds, "Rounds that are timed")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1000000u));
  app.add_option("--warm_rounds", race.warm_rounds, "Rounds before them")->capture_default_str();
  app.add_option("--compute_seconds", race.compute_seconds,
                 "How long the gradients of a round take")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : thinwire::kUsage;
  }
  return thinwire::Run(config_path, race);
}
