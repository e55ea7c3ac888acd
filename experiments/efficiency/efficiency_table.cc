#include "experiments/efficiency/efficiency_table.h"

#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/model/partition.h"
#include "common/text/problems.h"
#include "experiments/cluster/links.h"
#include "experiments/efficiency/exchange_times.h"
#include "experiments/efficiency/payload_bytes.h"
#include "experiments/efficiency/server_step.h"

namespace thinwire::lab {
namespace {

constexpr uint32_t kPublishedWorkers = 32;
constexpr uint32_t kMostWorkers = 256;
constexpr uint64_t kMostValues = uint64_t{1} << 32;

struct Method {
  const char* name;
  Compressor compressor;
  bool selects;
};

const Method kMethods[] = {
    {"thinwire fp8", Compressor::kFp8, false},
    {"thinwire onebit", Compressor::kOneBit, false},
    {"thinwire top-k", Compressor::kTopK, true},
    {"thinwire gTop-k", Compressor::kGtopk, true},
};

Problems Validate(const EfficiencyTable& table) {
  Problems problems;
  problems.RequireDensity("efficiency.density", table.density());
  problems.Require(table.alpha_ms() >= 0 && table.alpha_ms() <= 1e6, "efficiency.alpha_ms",
                   "0 to 1e6", table.alpha_ms());
  problems.Require(table.beta_ms() > 0 && table.beta_ms() <= 1, "efficiency.beta_ms",
                   "above 0 and at most 1", table.beta_ms());
  problems.Require(table.encode_ns_per_value() >= 0 && table.encode_ns_per_value() <= 1e6,
                   "efficiency.encode_ns_per_value", "0 to 1e6", table.encode_ns_per_value());
  for (int i = 0; i < table.workers_size(); ++i) {
    const uint32_t workers = table.workers(i);
    problems.Require(std::has_single_bit(workers) && workers >= 2 && workers <= kMostWorkers,
                     absl::StrCat("efficiency.workers[", i, "]"),
                     absl::StrCat("a power of two from 2 to ", kMostWorkers), workers);
  }
  for (int i = 0; i < table.network_size(); ++i) {
    const EfficiencyTable::Network& network = table.network(i);
    const std::string place = absl::StrCat("efficiency.network[", i, "].");
    if (network.name().empty()) problems.Add(place + "name", "missing (expected a name, got none)");
    problems.Require(network.name().find_first_of(",\"\n") == std::string::npos, place + "name",
                     "no comma, quotation mark or line break", network.name());
    problems.RequireInteger(place + "values", network.values(), 1, kMostValues);
    problems.RequireSeconds(place + "compute_seconds", network.compute_seconds());
    for (const auto& [field, seconds] :
         {std::pair("select_seconds", network.select_seconds()),
          std::pair("communicate_seconds", network.communicate_seconds())}) {
      problems.Require(seconds >= 0 && seconds <= 1e6, place + field, "0 to 1e6", seconds);
    }
    const int published = network.published_size();
    problems.Require(published == 0 || published == 3, place + "published",
                     "three values: dense, Top-k, gTop-k", absl::StrCat(published, " values"));
    for (const double percent : network.published()) {
      problems.Require(percent > 0 && percent <= 100, place + "published",
                       "above 0 and at most 100", percent);
    }
  }
  return problems;
}

// The rows of one network with one number of workers.
class Rows {
 public:
  Rows(const EfficiencyTable& table, const EfficiencyTable::Network& network, uint32_t workers,
       std::vector<EfficiencyRow>& rows)
      : table_(table), network_(network), workers_(workers), rows_(rows) {}

  void AddFormulas() {
    const WireTimes wire = {.alpha = table_.alpha_ms() * 1e-3, .beta = table_.beta_ms() * 1e-3};
    const auto values = static_cast<double>(network_.values());
    const double selected = table_.density() * values;
    const double select = network_.select_seconds();
    AddStep("dense", "formulas", compute() + DenseSeconds(wire, workers_, values));
    AddStep("Top-k", "formulas", compute() + select + TopKSeconds(wire, workers_, selected));
    AddStep("gTop-k", "formulas", compute() + select + GtopkSeconds(wire, workers_, selected));
  }

  void AddPublished() {
    if (workers_ != kPublishedWorkers) return;
    if (network_.communicate_seconds() > 0) {
      AddStep("gTop-k", "published seconds",
              compute() + network_.select_seconds() + network_.communicate_seconds());
    }
    if (network_.published_size() == 0) return;
    AddStep("dense", "published throughput", compute() * 100 / network_.published(0));
    AddStep("Top-k", "published throughput", compute() * 100 / network_.published(1));
    AddStep("gTop-k", "published throughput", compute() * 100 / network_.published(2));
  }

  absl::Status AddThinwire() {
    // A matrix, because vectors are not sent sparsely.
    const TensorShape tensor = {"values", {static_cast<int64_t>(network_.values()), 1}};
    ASSIGN_OR_RETURN(const Partition partition, Partition::Make({tensor}, 0, workers_));
    for (const Method& method : kMethods) {
      const PayloadBytes bytes = MeasurePayloadBytes(
          method.compressor, partition.value_count(ShardId{0}), workers_, table_.density());
      ServerStep step = {
          .workers = workers_,
          .compute_seconds = compute(),
          .push_bytes = bytes.push,
          .pull_bytes = bytes.pull,
          .link = {.bits_per_second = 32 / (table_.beta_ms() * 1e-3),
                   .latency = absl::Milliseconds(table_.alpha_ms()) / 2},
      };
      for (const bool slow : {false, true}) {
        if (slow && !method.selects) continue;
        step.encode_seconds =
            slow ? network_.select_seconds()
                 : table_.encode_ns_per_value() * 1e-9 * static_cast<double>(network_.values());
        for (const bool overlap : {false, true}) {
          step.overlap = overlap;
          AddStep(method.name,
                  absl::StrCat("virtual time", overlap ? " + overlap" : "",
                               slow ? " + slow selection" : ""),
                  ServerStepSeconds(step, partition));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  double compute() const { return network_.compute_seconds(); }

  void AddStep(std::string method, std::string source, double seconds) {
    rows_.push_back({network_.name(), workers_, std::move(method), std::move(source),
                     compute() / seconds, seconds});
  }

  const EfficiencyTable& table_;
  const EfficiencyTable::Network& network_;
  const uint32_t workers_;
  std::vector<EfficiencyRow>& rows_;
};

}  // namespace

absl::StatusOr<std::vector<EfficiencyRow>> EfficiencyRows(const EfficiencyTable& table) {
  RETURN_IF_ERROR(Validate(table).ToStatus());
  std::vector<EfficiencyRow> all;
  for (const EfficiencyTable::Network& network : table.network()) {
    for (const uint32_t workers : table.workers()) {
      Rows rows(table, network, workers, all);
      rows.AddFormulas();
      rows.AddPublished();
      RETURN_IF_ERROR(rows.AddThinwire());
    }
  }
  return all;
}

}  // namespace thinwire::lab
