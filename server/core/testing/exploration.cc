#include "server/core/testing/exploration.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace thinwire {

size_t Exploration::ClusterHash::operator()(const Cluster& cluster) const {
  return std::hash<std::string_view>()(
      std::string_view(reinterpret_cast<const char*>(&cluster), sizeof(Cluster)));
}

std::string Exploration::Run() {
  Visit(transitions_.Start(), 0, {});
  for (uint32_t from = 0; from < states_.size(); ++from) {
    for (const Action& action : transitions_.ActionsIn(states_[from])) {
      const Cluster after = transitions_.After(states_[from], action);
      const uint32_t to = Visit(after, from, action);
      if (!shard_states().violations().empty()) return shard_states().violations()[0];
      const std::string& violation = transitions_.violation();
      if (!violation.empty()) return absl::StrCat(violation, " after", DescribePath(to));
      if (to == from) continue;
      ++edge_count_;
      if (ClusterTransitions::IsProgress(states_[from], action)) progress_.emplace_back(to, from);
    }
    if (!ClusterTransitions::IsFinal(states_[from])) continue;
    ++final_count_;
    if (stops_ && !transitions_.EndsAtOneStep(states_[from])) {
      return absl::StrCat("the shards end at different steps after", DescribePath(from));
    }
  }
  const uint32_t stuck = FindStuck();
  if (stuck < states_.size()) return absl::StrCat("stuck after", DescribePath(stuck));
  return "";
}

uint32_t Exploration::Visit(const Cluster& cluster, uint32_t from, const Action& action) {
  const auto [place, is_new] = numbers_.try_emplace(cluster, static_cast<uint32_t>(states_.size()));
  if (is_new) {
    states_.push_back(cluster);
    reached_by_.emplace_back(from, action);
  }
  return place->second;
}

uint32_t Exploration::FindStuck() const {
  std::vector<std::pair<uint32_t, uint32_t>> edges = progress_;
  std::sort(edges.begin(), edges.end());
  std::vector<bool> finishes(states_.size());
  std::vector<uint32_t> waiting;
  for (uint32_t i = 0; i < states_.size(); ++i) {
    if (!ClusterTransitions::IsFinal(states_[i])) continue;
    finishes[i] = true;
    waiting.push_back(i);
  }
  while (!waiting.empty()) {
    const uint32_t to = waiting.back();
    waiting.pop_back();
    for (auto edge = std::lower_bound(edges.begin(), edges.end(), std::pair(to, 0u));
         edge != edges.end() && edge->first == to; ++edge) {
      if (finishes[edge->second]) continue;
      finishes[edge->second] = true;
      waiting.push_back(edge->second);
    }
  }
  return static_cast<uint32_t>(std::find(finishes.begin(), finishes.end(), false) -
                               finishes.begin());
}

std::string Exploration::DescribePath(uint32_t state) const {
  std::vector<std::string> lines;
  for (; state != 0; state = reached_by_[state].first) {
    const auto& [from, action] = reached_by_[state];
    lines.push_back(transitions_.Describe(states_[from], action));
  }
  std::string path;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    absl::StrAppend(&path, "\n  ", *line);
  }
  return path;
}

}  // namespace thinwire
