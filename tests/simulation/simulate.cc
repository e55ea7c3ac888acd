// Runs simulated clusters (simulation.h). Repeats the run of a failed test, or runs many seeds.
//
//   simulate --seed 17 --trace             one run, with one line per event
//   simulate --seed 100 --count 10000      many runs; prints the seed of the first violation
//   simulate --durability none --count 10  only seeds of jobs without durability, which run faster
//   simulate --broken sent-before-flush    breaks a rule on purpose
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/simulation/simulation.h"

int main(int argc, char** argv) {
  using namespace thinwire::simulation;
  CLI::App app("Runs simulated clusters with faults, each from one seed.");
  uint64_t seed = 1;
  uint64_t count = 1;
  bool trace = false;
  std::string broken = "none";
  std::string durability;
  app.add_option("--seed", seed, "the first seed; it also selects mode and durability");
  app.add_option("--count", count, "the number of seeds");
  app.add_flag("--trace", trace, "prints every event");
  app.add_option("--broken", broken, "a rule to break on purpose")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kBrokenRuleNames), std::end(kBrokenRuleNames))));
  app.add_option("--durability", durability, "runs only the seeds with this durability")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kDurabilityNames), std::end(kDurabilityNames))));
  CLI11_PARSE(app, argc, argv);

  SimulationCounts sum;
  const auto begin = std::chrono::steady_clock::now();
  uint64_t runs = 0;
  for (uint64_t next = seed; runs < count; ++next) {
    SimulationOptions options = OptionsOf(next);
    const std::string name = kDurabilityNames[static_cast<size_t>(options.durability)];
    if (!durability.empty() && name != durability) continue;
    ++runs;
    options.trace = trace ? &std::cout : nullptr;
    for (size_t b = 0; b < std::size(kBrokenRuleNames); ++b) {
      if (broken == kBrokenRuleNames[b]) options.broken = static_cast<BrokenRule>(b);
    }
    Simulation simulation(options);
    if (trace) std::cout << simulation.job() << "\n";
    const std::string violations = simulation.Run();
    sum.Add(simulation.counts());
    if (violations.empty()) continue;
    std::cout << violations << "seed " << next << ", " << simulation.job()
              << "\nbazel run //tests/simulation:simulate -- --seed " << next << " --trace\n";
    return 1;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::cout << sum << "\n"
            << count << " seeds from " << seed << ": no violation, "
            << static_cast<uint64_t>(static_cast<double>(count) / seconds.count())
            << " seeds per second\n";
  return 0;
}
