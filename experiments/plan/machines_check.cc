#include "experiments/plan/machines_check.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace thinwire::lab {
namespace {

constexpr double kMostMegabits = 1e9;
constexpr double kMostLatencyMs = 1e6;
constexpr double kMostNanoseconds = 1e9;
constexpr uint64_t kMostValues = uint64_t{1} << 32;

void CheckLink(const Link& link, const std::string& name, Problems& problems) {
  const auto require = [&](const char* field, double got, double most) {
    problems.Require(got >= 0 && got <= most, absl::StrCat(name, ".", field),
                     absl::StrCat("0 to ", most), got);
  };
  require("megabits_per_second", link.megabits_per_second(), kMostMegabits);
  require("latency_ms", link.latency_ms(), kMostLatencyMs);
}

void CheckCodecCosts(const Machines& machines, Problems& problems) {
  std::set<Compression::Codec::Value> codecs;
  for (int i = 0; i < machines.codec_cost_size(); ++i) {
    const CodecCost& cost = machines.codec_cost(i);
    const std::string name = absl::StrCat("codec_cost[", i, "]");
    if (!cost.has_codec()) {
      problems.Add(absl::StrCat(name, ".codec"), "missing (expected a codec, got none)");
    } else if (!codecs.insert(cost.codec()).second) {
      problems.Add(absl::StrCat(name, ".codec"),
                   absl::StrCat("given twice (expected each codec once, got ",
                                Compression::Codec::Value_Name(cost.codec()), " again)"));
    }
    const auto require = [&](const char* field, double got) {
      problems.Require(got >= 0 && got <= kMostNanoseconds, absl::StrCat(name, ".", field),
                       absl::StrCat("0 to ", kMostNanoseconds), got);
    };
    require("encode_ns_per_value", cost.encode_ns_per_value());
    require("decode_ns_per_value", cost.decode_ns_per_value());
    require("encode_us_per_shard", cost.encode_us_per_shard());
    require("decode_us_per_shard", cost.decode_us_per_shard());
  }
}

void CheckSynthetic(const SyntheticTask& task, Problems& problems) {
  problems.RequireInteger("synthetic.values", task.values(), 1, kMostValues);
  problems.RequireInteger("synthetic.tensors", task.tensors(), 1);
  problems.RequireFloat("synthetic.noise", task.noise());
  problems.RequireInteger("synthetic.steps", task.steps(), 1);
  if (task.tensors() > 0 && task.values() % task.tensors() != 0) {
    problems.Add("synthetic.values",
                 absl::StrCat("not divisible (expected a multiple of the ", task.tensors(),
                              " tensors, got ", task.values(), ")"));
  }
}

// Checks the sites of COUNT workers or servers, whose numbers at a site OF returns.
template <typename Of>
void CheckCount(const Machines& machines, const char* field, uint32_t count, Of of,
                Problems& problems) {
  uint64_t sum = 0;
  for (const Site& site : machines.site()) sum += of(site);
  if (sum == count) return;
  problems.Add("site", absl::StrCat("wrong number of ", field, " (expected ", count,
                                    " at all sites together, got ", sum, ")"));
}

void CheckSites(const Machines& machines, const JobSpec& job, Problems& problems) {
  std::set<std::string> names;
  for (int i = 0; i < machines.site_size(); ++i) {
    const std::string& name = machines.site(i).name();
    if (!name.empty() && names.insert(name).second) continue;
    problems.Add(
        absl::StrCat("site[", i, "].name"),
        absl::StrCat("wrong value (expected another name for each site, got \"", name, "\")"));
  }
  if (!names.empty()) {
    CheckCount(
        machines, "workers", job.rule.workers, [](const Site& s) { return s.workers(); }, problems);
    CheckCount(
        machines, "servers", machines.servers_beside_workers() ? 0 : job.server_count,
        [](const Site& s) { return s.servers(); }, problems);
  }
  std::set<std::set<std::string>> pairs;
  for (int i = 0; i < machines.distance_size(); ++i) {
    const Distance& distance = machines.distance(i);
    const std::string name = absl::StrCat("distance[", i, "]");
    problems.Require(distance.round_trip_ms() >= 0 && distance.round_trip_ms() <= kMostLatencyMs,
                     absl::StrCat(name, ".round_trip_ms"), absl::StrCat("0 to ", kMostLatencyMs),
                     distance.round_trip_ms());
    const bool known = names.contains(distance.from()) && names.contains(distance.to()) &&
                       distance.from() != distance.to();
    if (known && pairs.insert({distance.from(), distance.to()}).second) continue;
    problems.Add(name, absl::StrCat("wrong value (expected each two sites once, got \"",
                                    distance.from(), "\" and \"", distance.to(), "\")"));
  }
  const size_t pair_count = names.size() * (names.size() - (names.empty() ? 0 : 1)) / 2;
  if (pairs.size() < pair_count) {
    problems.Add("distance", absl::StrCat("missing (expected the distances of ", pair_count,
                                          " pairs of sites, got ", pairs.size(), ")"));
  }
}

}  // namespace

Problems CheckMachines(const Machines& machines, const JobSpec& job) {
  Problems problems;
  CheckLink(machines.worker_link(), "worker_link", problems);
  CheckLink(machines.server_link(), "server_link", problems);
  CheckCodecCosts(machines, problems);
  if (machines.has_synthetic()) CheckSynthetic(machines.synthetic(), problems);
  CheckSites(machines, job, problems);

  const std::string exchange = Machines::Exchange::Value_Name(machines.exchange());
  const bool servers = machines.exchange() == Machines::Exchange::servers;
  const auto only_with = [&](bool given, bool holds, const char* field, const std::string& needed,
                             const std::string& got) {
    if (given && !holds) {
      problems.Add(field, absl::StrCat("only valid with ", needed, " (got ", got, ")"));
    }
  };
  only_with(machines.site_size() > 0, servers, "site", "exchange: servers",
            absl::StrCat("exchange: ", exchange));
  only_with(machines.has_imposed_staleness(), servers, "imposed_staleness", "exchange: servers",
            absl::StrCat("exchange: ", exchange));
  only_with(machines.has_imposed_staleness(), job.rule.mode() == "async", "imposed_staleness",
            "mode: async", absl::StrCat("mode: ", std::string(job.rule.mode())));
  only_with(servers && machines.servers_beside_workers(), job.server_count <= job.rule.workers,
            "servers_beside_workers", "at most as many servers as workers",
            absl::StrCat(job.server_count, " servers and ", job.rule.workers, " workers"));
  return problems;
}

}  // namespace thinwire::lab
