#include "server/core/effects.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thinwire {
namespace {

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAccept:
      return "accept";
    case Verdict::kStale:
      return "stale";
    case Verdict::kFenced:
      return "fenced";
    case Verdict::kRepeat:
      return "repeat";
    case Verdict::kLate:
      return "late";
    case Verdict::kEarly:
      return "early";
    case Verdict::kRefused:
      return "refused";
  }
  return "?";
}

std::string Workers(const std::vector<WorkerId>& workers) {
  return absl::StrJoin(workers, ",", [](std::string* out, WorkerId worker) {
    absl::StrAppend(out, "w", worker.value);
  });
}

}  // namespace

std::ostream& operator<<(std::ostream& out, Verdict verdict) { return out << Name(verdict); }

std::ostream& operator<<(std::ostream& out, const Judgement& j) {
  out << "w" << j.worker << "/" << j.incarnation << " step " << j.step << ": " << j.verdict;
  if (j.again) out << " again";
  out << " (frontier " << j.frontier << ", version " << j.version;
  if (j.staleness != 0) out << ", staleness " << j.staleness;
  if (j.dropped) out << ", dropped";
  if (j.uncompensated) out << ", uncompensated";
  return out << ")";
}

std::ostream& operator<<(std::ostream& out, const ReadAnswer& a) {
  out << "answer w" << a.worker << "/" << a.incarnation << " step " << a.step << " in " << a.form;
  if (a.last > a.step) out << ", up to " << a.last << (a.holds_pushes ? ", held" : "");
  return out;
}

std::ostream& operator<<(std::ostream& out, const JoinAnswer& j) {
  return out << "join /" << j.incarnation << (j.open ? " open" : " shut")
             << (j.seeded ? " seeded" : " unseeded") << " frontier " << j.frontier
             << " predecessor " << j.predecessor_next << " largest " << j.largest_next
             << (j.by_round ? " by round" : " by push");
}

std::ostream& operator<<(std::ostream& out, const ClosedRound& r) {
  return out << "round " << r.step << " of {" << Workers(r.accepted) << "}";
}

std::ostream& operator<<(std::ostream& out, const FullRound& r) {
  return out << "full round " << r.step << ": " << r.sums;
}

std::ostream& operator<<(std::ostream& out, const Effects& e) {
  std::string_view gap = "";
  const auto print = [&](const auto& value) {
    out << gap << value;
    gap = "; ";
  };
  if (e.judgement.has_value()) print(*e.judgement);
  if (e.join.has_value()) print(*e.join);
  if (e.opened) print("opened");
  for (const ClosedRound& round : e.rounds) print(round);
  if (e.full_round.has_value()) print(*e.full_round);
  for (const ReadAnswer& answer : e.answers) print(answer);
  return out;
}

std::ostream& operator<<(std::ostream& out, const BlockedRead& w) {
  out << "w" << w.worker << "/" << w.incarnation << " waits for step " << w.step << " at frontier "
      << w.frontier;
  if (w.unseeded) out << ", unseeded";
  if (w.wanted != 0) out << ", " << w.live << " of " << w.wanted << " present";
  if (!w.unfinished.empty()) out << ", held by " << Workers(w.unfinished);
  return out;
}

}  // namespace thinwire
