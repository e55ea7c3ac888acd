#include "server/core/testing/scenario.h"

#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

using Words = std::vector<std::string>;

// Parses WORD as a number. If WORD is not a number, returns a number that no scenario uses, so that
// the test fails.
uint64_t Natural(absl::string_view word) {
  uint64_t value = 0;
  return absl::SimpleAtoi(word, &value) ? value : 999999;
}

float Real(absl::string_view word) {
  float value = 0;
  return absl::SimpleAtof(word, &value) ? value : 999999;
}

std::string Name(WorkerId worker) { return absl::StrCat("w", worker.value); }

std::string Names(const std::vector<WorkerId>& workers) {
  if (workers.empty()) return "nobody";
  return absl::StrJoin(workers, " ", [](std::string* out, WorkerId w) { *out += Name(w); });
}

absl::string_view Name(Verdict verdict) {
  constexpr absl::string_view kNames[] = {"?",      "accept", "stale", "fenced",
                                          "repeat", "late",   "early", "refused"};
  return kNames[static_cast<int>(verdict)];
}

ShardOptions OneValue(const Rule& rule, const StalenessSpec& staleness) {
  ShardOptions options;
  options.value_count = 1;
  options.rule = rule;
  options.staleness = staleness;
  if (staleness.policy == StalenessPolicy::kDcasgd) {
    options.publish = PublishOptions{.codec = CodecSpec{.id = CodecId::kFp16}, .every = 1};
  }
  return options;
}

PushEvent ParsePush(const FakeWorker& worker, const Words& words) {
  PushEvent push = worker.PushNothing(Natural(words.at(2)));
  if (words.at(3) == "nothing") return push;
  const std::pair<absl::string_view, absl::string_view> weights =
      absl::StrSplit(absl::StripPrefix(words[3], "x"), absl::MaxSplits('+', 1));
  push.examples = static_cast<uint32_t>(Natural(weights.first));
  if (!weights.second.empty()) push.late_examples = static_cast<uint32_t>(Natural(weights.second));
  push.payload = Fp32Payload({Real(words.at(4))});
  if (words.size() > 5) push.computed_version = Version{Natural(words.at(6))};
  return push;
}

RuleEvent ParseRule(const Words& words, uint32_t workers) {
  const Step from{Natural(words.back())};
  if (words[1] == "sync") return {Rule::Sync(workers), from};
  if (words[1] == "async") return {Rule::Async(workers), from};
  const uint64_t number = Natural(words.at(2));
  if (words[1] == "ssp") return {Rule::Ssp(workers, number), from};
  return {Rule::Backup(workers, static_cast<uint32_t>(number)), from};
}

class ScenarioRunner {
 public:
  ScenarioRunner(const Rule& rule, const StalenessSpec& staleness)
      : worker_count_(rule.workers),
        schedule_(ConstantRate()),
        shard_(OneValue(rule, staleness), optimizer_, schedule_) {}

  // Applies EVENT and returns its effects as text.
  std::string Run(absl::string_view event) {
    const Words words = absl::StrSplit(event, ' ', absl::SkipEmpty());
    if (words[0] == "waits") return DescribeWaits();
    if (words[0] == "start") return RunStart(Real(words.at(1)));
    return DescribeEffects(Parse(words));
  }

 private:
  std::string RunStart(float value) {
    std::string effects;
    for (uint32_t w = 0; w < worker_count_; ++w) shard_.Apply(Parse({Name(WorkerId{w}), "join"}));
    shard_.Apply(SeedEvent{Fp32Payload({value})});
    for (uint32_t w = 0; w < worker_count_; ++w) {
      effects = DescribeEffects(Parse({Name(WorkerId{w}), "read", "0"}));
    }
    return effects;
  }

  Event Parse(const Words& words) {
    if (words[0] == "seed") return SeedEvent{Fp32Payload({Real(words.at(1))})};
    if (words[0] == "open") return OpenEvent{};
    if (words[0] == "rule") return ParseRule(words, worker_count_);
    const FakeWorker worker = WorkerNamed(words[0], words.at(1) == "join");
    if (words[1] == "join") return worker.Join();
    if (words[1] == "read") return worker.Read(Natural(words.at(2)));
    if (words[1] == "push") return ParsePush(worker, words);
    if (words[1] == "expire") return worker.Expire();
    if (words[1] == "return") return worker.Return();
    return worker.Leave();
  }

  FakeWorker WorkerNamed(absl::string_view name, bool joins) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(absl::StripPrefix(name, "w"), absl::MaxSplits('/', 1));
    const WorkerId worker{static_cast<uint32_t>(Natural(parts.first))};
    Incarnation& newest = newest_[worker];
    if (!parts.second.empty()) return {worker, Incarnation{Natural(parts.second)}};
    if (joins) ++newest;
    return {worker, newest};
  }

  std::string DescribeEffects(const Event& event) {
    const Version before = shard_.version();
    const Effects effects = shard_.Apply(event);
    std::vector<std::string> parts;
    if (effects.judgement.has_value()) {
      parts.push_back(absl::StrCat(Name(effects.judgement->verdict),
                                   effects.judgement->again ? " again" : "",
                                   effects.judgement->uncompensated ? " uncompensated" : ""));
    }
    if (effects.join.has_value()) {
      parts.push_back(
          absl::StrCat(effects.join->open ? "open" : "shut", " at ", effects.join->frontier.value));
    }
    if (effects.opened) parts.push_back("opens");
    for (const ClosedRound& round : effects.rounds) {
      parts.push_back(absl::StrCat("round ", round.step.value, " of ", Names(round.accepted)));
    }
    if (shard_.version() != before) {
      parts.push_back(
          absl::StrCat("version ", shard_.version().value, " is ", shard_.masters()[0]));
    }
    for (const ReadAnswer& answer : effects.answers) {
      parts.push_back(absl::StrCat(Name(answer.worker), " begins ", answer.step.value));
      if (answer.last > answer.step) absl::StrAppend(&parts.back(), " up to ", answer.last.value);
      if (answer.holds_pushes) parts.back() += ", held";
    }
    return parts.empty() ? "nothing" : absl::StrJoin(parts, "; ");
  }

  std::string DescribeWaits() const {
    std::vector<std::string> parts;
    for (const BlockedRead& wait : shard_.BlockedReads()) {
      std::string line = absl::StrCat(Name(wait.worker), " for ", wait.step.value, ": ");
      if (wait.wanted != 0) {
        absl::StrAppend(&line, wait.live, " of ", wait.wanted, wait.unseeded ? " unseeded" : "");
      } else {
        absl::StrAppend(&line, Names(wait.unfinished));
      }
      parts.push_back(std::move(line));
    }
    return parts.empty() ? "nothing" : absl::StrJoin(parts, "; ");
  }

  const uint32_t worker_count_;
  PlainDescent optimizer_;
  Schedule schedule_;
  Shard shard_;
  std::map<WorkerId, Incarnation> newest_;
};

std::vector<absl::string_view> Lines(absl::string_view scenario) {
  std::vector<absl::string_view> lines;
  for (const absl::string_view line : absl::StrSplit(scenario, '\n')) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(line);
    if (!stripped.empty()) lines.push_back(stripped);
  }
  return lines;
}

}  // namespace

std::string RunScenario(const Rule& rule, absl::string_view scenario,
                        const StalenessSpec& staleness) {
  ScenarioRunner runner(rule, staleness);
  std::string result;
  for (const absl::string_view line : Lines(scenario)) {
    const absl::string_view event = line.substr(0, line.find("->"));
    absl::StrAppend(&result, event, "-> ", runner.Run(event), "\n");
  }
  return result;
}

std::string Normalize(absl::string_view scenario) {
  std::string plain;
  for (const absl::string_view line : Lines(scenario)) absl::StrAppend(&plain, line, "\n");
  return plain;
}

}  // namespace thinwire
