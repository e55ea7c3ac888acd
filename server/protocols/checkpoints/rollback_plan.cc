#include "server/protocols/checkpoints/rollback_plan.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thinwire {
namespace {

using Servers = std::vector<std::optional<ServerCheckpoints>>;

absl::Status NoCommonStep(const Servers& servers) {
  std::vector<std::string> lists;
  for (size_t s = 0; s < servers.size(); ++s) {
    const std::string steps =
        absl::StrJoin(servers[s]->steps, ", ",
                      [](std::string* out, Step step) { absl::StrAppend(out, step.value); });
    lists.push_back(absl::StrCat("server ", s, ": ", steps.empty() ? "none" : steps));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("rollback: the servers have no checkpoint of the same step (expected a common "
                   "step, got ",
                   absl::StrJoin(lists, "; "), ")"));
}

absl::Status LostRun(size_t server, RunId expected, RunId got) {
  const auto name = [](RunId run) {
    return run == RunId{} ? "none" : absl::StrCat(absl::Hex(run.value, absl::kZeroPad16));
  };
  return absl::FailedPreconditionError(absl::StrCat(
      "server ", server, " lost its state: it does not belong to the run (expected run ",
      name(expected), ", got ", name(got), "); restart all servers to begin a new run"));
}

}  // namespace

std::vector<Step> CommonSteps(const Servers& servers) {
  if (!servers.front().has_value()) return {};
  std::vector<Step> common = servers.front()->steps;
  for (const auto& server : servers) {
    if (!server.has_value()) return {};
    std::vector<Step> both;
    std::ranges::set_intersection(common, server->steps, std::back_inserter(both));
    common = std::move(both);
  }
  return common;
}

std::optional<Step> NewestCommonStep(const Servers& servers) {
  const std::vector<Step> common = CommonSteps(servers);
  return common.empty() ? std::nullopt : std::optional(common.back());
}

absl::StatusOr<std::optional<RollbackOrder>> PlanRollback(const Servers& servers, bool settled) {
  if (std::ranges::any_of(servers, [](const auto& server) { return !server.has_value(); })) {
    return std::nullopt;
  }
  const ServerCheckpoints& lead = *servers.front();
  const bool awaits =
      std::ranges::any_of(servers, [](const auto& server) { return server->awaits_rollback; });
  RollbackOrder behind = {.servers = {}, .generation = lead.generation, .step = {}};
  for (size_t s = 1; s < servers.size(); ++s) {
    if (servers[s]->run != lead.run) {
      if (awaits) return LostRun(s, lead.run, servers[s]->run);
      return std::nullopt;  // a worker's next Join finds this
    }
    if (servers[s]->generation > lead.generation) {
      return absl::FailedPreconditionError(absl::StrCat(
          "rollback: server ", s, " is in a newer generation than server 0 (expected at most ",
          lead.generation.value, ", got ", servers[s]->generation.value, ")"));
    }
    if (servers[s]->generation < lead.generation && !settled) {
      behind.servers.push_back(ServerId{static_cast<uint32_t>(s)});
    }
  }
  if (!behind.servers.empty()) {
    if (lead.steps.empty()) return NoCommonStep(servers);
    behind.step = lead.steps.back();
    return behind;
  }
  if (!awaits) return std::nullopt;
  const std::optional<Step> common = NewestCommonStep(servers);
  if (!common.has_value()) {
    if (std::ranges::any_of(servers, [](const auto& server) { return server->writing; })) {
      return std::nullopt;
    }
    return NoCommonStep(servers);
  }
  return RollbackOrder{
      .servers = {ServerId{0}}, .generation = lead.generation + 1, .step = *common};
}

}  // namespace thinwire
