#include "server/core/event.h"

namespace thinwire {
namespace {

template <typename Sent>
void PrintSender(std::ostream& out, const char* what, const Sent& sent) {
  out << what << " w" << sent.worker << "/" << sent.incarnation;
}

void Print(std::ostream& out, const SeedEvent& e) {
  out << "seed " << e.payload.bytes().size() << " bytes";
}

void Print(std::ostream& out, const JoinEvent& e) { PrintSender(out, "join", e); }

void Print(std::ostream& out, const ReadEvent& e) {
  PrintSender(out, "read", e);
  out << " step " << e.step << " generation " << e.generation;
}

void Print(std::ostream& out, const PushEvent& e) {
  PrintSender(out, "push", e);
  out << " step " << e.step << " generation " << e.generation << " examples " << e.examples << "+"
      << e.late_examples << " of version " << e.computed_version << ", " << e.payload.bytes().size()
      << " bytes, rate factor " << e.rate_factor;
}

void Print(std::ostream& out, const ExpireEvent& e) { PrintSender(out, "expire", e); }
void Print(std::ostream& out, const ReturnEvent& e) { PrintSender(out, "return", e); }
void Print(std::ostream& out, const OpenEvent&) { out << "open"; }
void Print(std::ostream& out, const LeaveEvent& e) { PrintSender(out, "leave", e); }
void Print(std::ostream& out, const RuleEvent& e) {
  out << "rule " << e.rule;
  if (e.from != Step{}) out << " from step " << e.from;
}
void Print(std::ostream& out, const ShutEvent&) { out << "shut"; }
void Print(std::ostream& out, const SumEvent& e) { out << "sum step " << e.step << ": " << e.sums; }
void Print(std::ostream& out, const PlanEvent& e) { out << "plan " << e.examples << " examples"; }
void Print(std::ostream& out, const UpdateEvent& e) {
  out << "update of step " << e.step << ": " << e.payload.bytes().size() << " bytes";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Event& event) {
  std::visit([&](const auto& e) { Print(out, e); }, event);
  return out;
}

}  // namespace thinwire
