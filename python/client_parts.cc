#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/control.pb.h"
#include "proto/worker_event.pb.h"
#include "python/client_class.h"

namespace nb = nanobind;

namespace thinwire {
namespace {

// Deals::Wait. Returns the deals as bytes.
std::vector<nb::bytes> AwaitDeals(PyClient& self, uint64_t step, size_t known) {
  self.CheckBetweenSteps("await_deals");
  const auto wait = [step, known](Client& client) {
    return client.deals().Wait(Step{step}, known);
  };
  using Deals = absl::StatusOr<std::vector<Deal>>;
  // Usually the step is dealt, and the wait needs no other thread.
  const bool is_dealt = self.client().deals().IsDealt(Step{step});
  const Deals deals = is_dealt ? wait(self.client()) : self.Run<Deals>(wait);
  self.Check(deals.status());
  std::vector<nb::bytes> texts;
  for (const Deal& deal : *deals) {
    const std::string text = deal.SerializeAsString();
    texts.emplace_back(text.data(), text.size());
  }
  return texts;
}

// Draining::AwaitCommonStop, Start and ResidualNorm, between two steps.
std::optional<uint64_t> AwaitCommonStop(PyClient& self, double seconds) {
  self.CheckBetweenSteps("await_common_stop");
  const auto step = self.Run<absl::StatusOr<std::optional<Step>>>(
      [longest = absl::Seconds(seconds)](Client& client) {
        return client.draining().AwaitCommonStop(longest);
      });
  self.Check(step.status());
  return step->has_value() ? std::optional((*step)->value) : std::nullopt;
}

bool StartDrain(PyClient& self, double step_seconds, bool has_unpushed) {
  self.CheckBetweenSteps("start_drain");
  const auto starts = self.Run<absl::StatusOr<bool>>([=](Client& client) {
    return client.draining().Start(absl::Seconds(step_seconds), has_unpushed);
  });
  self.Check(starts.status());
  return *starts;
}

double ResidualNorm(PyClient& self) {
  self.CheckBetweenSteps("residual_norm");
  const auto norm = self.Run<absl::StatusOr<double>>(
      [](Client& client) { return client.draining().ResidualNorm(); });
  self.Check(norm.status());
  return *norm;
}

nb::list ReadMasters(PyClient& self, bool averages) {
  self.CheckBetweenSteps(averages ? "read_averages" : "read_masters");
  using Values = std::vector<std::vector<float>>;
  auto values = self.Run<absl::StatusOr<Values>>([averages](Client& client) {
    return averages ? client.masters().ReadAverages() : client.masters().Read();
  });
  self.Check(values.status());
  nb::list arrays;
  for (size_t i = 0; i < values->size(); ++i) {
    arrays.append(ArrayOf(std::move((*values)[i]), self.tensors()[i]));
  }
  return arrays;
}

void ReportProgress(const PyClient& self, uint64_t planned_steps, double seconds,
                    std::optional<double> loss) {
  WorkerProgress progress;
  progress.set_planned_steps(planned_steps);
  progress.set_examples(self.examples());
  progress.set_seconds(seconds);
  if (loss.has_value()) progress.set_loss(*loss);
  self.UsableClient().members().ReportProgress(std::move(progress));
}

void ReportTest(const PyClient& self, std::optional<double> accuracy, std::optional<double> loss) {
  ModelTest test;
  test.set_step(self.next().value);
  if (accuracy.has_value()) {
    test.set_accuracy(*accuracy);
  } else if (loss.has_value()) {
    test.set_loss(*loss);
  }
  self.UsableClient().members().ReportTest(test);
}

std::vector<uint32_t> Live(const PyClient& self) {
  std::vector<uint32_t> numbers;
  for (const WorkerId worker : self.client().members().live()) numbers.push_back(worker.value);
  return numbers;
}

std::map<std::string, uint64_t> Counters(const PyClient& self) {
  const WorkerCounters counters = self.client().counters();
  std::map<std::string, uint64_t> values;
  const google::protobuf::Descriptor& type = *WorkerCounters::descriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    values[type.field(i)->name()] =
        WorkerCounters::GetReflection()->GetUInt64(counters, type.field(i));
  }
  return values;
}

}  // namespace

void AddClientParts(nb::class_<PyClient>& client) {
  using namespace nb::literals;  // NOLINT: "name"_a
  client
      .def(
          "await_deals", &AwaitDeals, "step"_a, "known"_a,
          "Blocks until all deals up to STEP are known, and returns those with numbers above KNOWN "
          "as bytes (Deals in client/parts/deals.h).")
      .def(
          "is_dealt",
          [](const PyClient& self, uint64_t step) {
            return self.UsableClient().deals().IsDealt(Step{step});
          },
          "step"_a, "Returns whether await_deals for STEP returns at once.")
      .def(
          "begin_epoch",
          [](const PyClient& self, uint64_t epoch, uint64_t begin) {
            self.UsableClient().deals().BeginEpoch(epoch, Step{begin});
          },
          "epoch"_a, "begin"_a,
          "Tells the lead that the next step belongs to EPOCH of the data, which begins at step "
          "BEGIN.")
      .def(
          "save_state",
          [](PyClient& self) {
            self.Check(
                self.Run<absl::Status>([](Client& client) { return client.state().Save(); }));
          },
          "Saves the residuals in the state folder. Call it between two steps.")
      .def_prop_ro(
          "state_is_due", [](const PyClient& self) { return self.UsableClient().state().IsDue(); },
          "Whether the servers make a checkpoint of the next step, so that save_state is due.")
      .def("await_common_stop", &AwaitCommonStop, "seconds"_a,
           "After stop(): returns the step before which all live workers stop, or None if some of "
           "them go on, or if they do not agree within SECONDS.")
      .def("start_drain", &StartDrain, "step_seconds"_a, "has_unpushed"_a = false,
           "After stop(): returns whether there is a residual, which the next step will empty, or "
           "values that it shall push (HAS_UNPUSHED). STEP_SECONDS is the usual time of a step.")
      .def("residual_norm", &ResidualNorm,
           "Returns the L1 norm of the gradient values that no server is known to have.")
      .def(
          "stop",
          [](const PyClient& self) {
            if (!self.closed()) self.client().Stop();
          },
          "Ends the waits of the training thread early.")
      .def(
          "wait_until_alone",
          [](PyClient& self) {
            self.CheckBetweenSteps("wait_until_alone");
            self.Check(self.Run<absl::Status>(
                [](Client& client) { return client.members().WaitUntilAlone(); }));
          },
          "Blocks until no other worker is live.")
      .def(
          "read_masters", [](PyClient& self) { return ReadMasters(self, /*averages=*/false); },
          "Returns the exact fp32 parameters of the servers, one new array per tensor.")
      .def(
          "read_averages", [](PyClient& self) { return ReadMasters(self, /*averages=*/true); },
          "Returns the moving averages of the parameters (setting parameter_average).")
      .def(
          "report_progress", &ReportProgress, "planned_steps"_a, "seconds"_a, "loss"_a.none(),
          "Tells the lead how far this worker has trained (WorkerProgress in proto/control.proto).")
      .def("report_test", &ReportTest, "accuracy"_a.none(), "loss"_a.none(),
           "Tells the lead the result of a test of the next step's parameters.")
      .def_prop_ro("live", &Live, "The numbers of the workers with valid leases.")
      .def_prop_ro(
          "retired", [](const PyClient& self) { return self.client().members().retired(); },
          "Whether an operator has removed this worker.")
      .def_prop_ro(
          "waiting", [](const PyClient& self) { return self.client().waiting(); },
          "Names the workers or the server that this worker waits for; '' if none.")
      .def_prop_ro(
          "counters", &Counters,
          "The counters of the client by name (WorkerCounters in proto/worker_event.proto).")
      .def_prop_ro(
          "nonfinite_gradients",
          [](const PyClient& self) { return self.client().counters().nonfinite_gradients(); },
          "The counter of this name.")
      .def_prop_ro(
          "rolled_back", [](const PyClient& self) { return self.client().rolled_back(); },
          "Whether the servers continue from an earlier step.");
}

}  // namespace thinwire
