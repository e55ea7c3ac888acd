// Runs simulated clusters (random_run.h). Repeats the run of a failed test, or runs many seeds.
//
//   simulate --seed 17 --trace             one run, with one line per event
//   simulate --seed 100 --count 10000      many runs; prints the seed of the first violation
//   simulate --durability none --count 10  only seeds of jobs without durability
//   simulate --mutant sent-before-flush    breaks a rule on purpose
#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "cli/process/temp_dir.h"
#include "sim/random_run.h"

int main(int argc, char** argv) {
  using namespace thinwire::sim;
  CLI::App app("Runs simulated clusters with faults, each from one seed.");
  uint64_t seed = 1;
  uint64_t count = 1;
  bool trace = false;
  std::string mutant = "none";
  std::string durability;
  app.add_option("--seed", seed, "the first seed; it also selects mode and durability");
  app.add_option("--count", count, "the number of seeds");
  app.add_flag("--trace", trace, "prints every event, and the messages of the product");
  app.add_option("--mutant", mutant, "a rule to break on purpose")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kMutantNames), std::end(kMutantNames))));
  app.add_option("--durability", durability, "runs only the seeds with this durability")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kDurabilityNames), std::end(kDurabilityNames))));
  CLI11_PARSE(app, argc, argv);
  google::InitGoogleLogging(argv[0]);
  FLAGS_logtostderr = true;
  if (!trace) FLAGS_minloglevel = google::FATAL;
  Mutant chosen = Mutant::kNone;
  for (size_t m = 0; m < std::size(kMutantNames); ++m) {
    if (mutant == kMutantNames[m]) chosen = static_cast<Mutant>(m);
  }

  const auto folder = thinwire::TempDir::Make(std::filesystem::temp_directory_path());
  if (!folder.ok()) {
    std::cerr << folder.status().message() << "\n";
    return 1;
  }
  LedgerCounts counts;
  FaultCounts faults;
  const auto begin = std::chrono::steady_clock::now();
  uint64_t runs = 0;
  int status = 0;
  for (uint64_t next = seed; runs < count && status == 0; ++next) {
    const std::string name = kDurabilityNames[static_cast<size_t>(DurabilityOf(next))];
    if (!durability.empty() && name != durability) continue;
    ++runs;
    const std::string state_dir = (*folder)->PathOf(std::to_string(next));
    std::filesystem::create_directory(state_dir);
    const RandomRun run = RunSeed(next, state_dir, chosen, trace ? &std::cout : nullptr);
    std::filesystem::remove_all(state_dir);
    counts.Add(run.counts);
    faults.Add(run.faults);
    if (run.violations.empty()) continue;
    std::cout << run.violations << "seed " << next << ", " << DrawSpec(next)
              << "\nbazel run //sim:simulate -- --seed " << next << " --trace\n";
    status = 1;
  }
  if (status != 0) return status;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::cout << faults << "\n"
            << counts << "\n"
            << count << " seeds from " << seed << ": no violation, "
            << static_cast<uint64_t>(static_cast<double>(count) / seconds.count())
            << " seeds per second\n";
  return 0;
}
