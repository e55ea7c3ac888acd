#include "python/client_class.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/model/partition.h"
#include "common/spec/group_spec.h"
#include "common/spec/job_spec.h"
#include "common/spec/optimizer_spec.h"
#include "common/spec/place_tensors.h"

namespace nb = nanobind;

namespace thinwire {

using namespace nb::literals;  // NOLINT: "name"_a

nb::class_<PyClient> AddClient(nb::module_& module) {
  nb::class_<PyClient> client(
      module, "Client",
      "A worker's client. One thread makes all calls, in this order: join; begin_step, wait_tensor "
      "and ready for each tensor, end_step, next_step for each step; leave; close.");
  client
      .def(
          "__init__",
          [](PyClient* self, const std::string& config, const std::vector<Setting>& settings,
             const std::vector<NamedShape>& tensors, uint32_t worker, std::string addresses,
             std::string credentials, bool insecure, std::string state_dir, uint64_t planned_steps,
             uint32_t examples, std::string task, std::string uplink, std::string downlink,
             uint32_t local_steps, uint32_t fragments, uint32_t overlap_steps, double mixing,
             std::optional<uint32_t> site, uint32_t site_workers, uint32_t site_backup,
             uint32_t member, std::vector<uint32_t> owned_tensors) {
            new (self) PyClient(
                config, settings, tensors,
                {.worker = worker,
                 .site = {.site = site, .workers = site_workers, .backup = site_backup},
                 .member = member,
                 .owned_tensors = std::move(owned_tensors),
                 .addresses = std::move(addresses),
                 .credentials = std::move(credentials),
                 .insecure = insecure,
                 .bandwidth = {.uplink = std::move(uplink), .downlink = std::move(downlink)},
                 .state_dir = std::move(state_dir),
                 .planned_steps = planned_steps,
                 .examples = examples,
                 .local = {.count = local_steps,
                           .fragments = fragments,
                           .overlap = overlap_steps,
                           .mixing = mixing},
                 .task = std::move(task)});
          },
          "config"_a, "settings"_a, "tensors"_a, "worker"_a, "addresses"_a, "credentials"_a = "",
          "insecure"_a = false, "state_dir"_a = "", "planned_steps"_a = 0, "examples"_a = 1,
          "task"_a = "", "uplink"_a = "", "downlink"_a = "", "local_steps"_a = 1, "fragments"_a = 1,
          "overlap_steps"_a = 0, "mixing"_a = 0.5, "site"_a = nb::none(), "site_workers"_a = 0,
          "site_backup"_a = 0, "member"_a = 0, "owned_tensors"_a = std::vector<uint32_t>())
      .def("join", &PyClient::Join, "initial"_a,
           "Joins every server and returns the first step. INITIAL has one contiguous fp32 array "
           "per tensor, the same for all workers. Call it again after RolledBack.")
      .def("begin_step", &PyClient::BeginStep, "examples"_a = 1, "scale"_a = 1.0F,
           "rate_factor"_a = 1.0F,
           "Begins the step that join or next_step returned. EXAMPLES is the weight of this "
           "worker's gradient; SCALE is the factor that the gradients were multiplied by; "
           "RATE_FACTOR multiplies the learning rate of the update.")
      .def(
          "wait_tensor", &PyClient::WaitTensor, "tensor"_a,
          "Blocks until the parameters of TENSOR for this step are in the replica. They stay there "
          "until ready is called for TENSOR.")
      .def("wait_all", &PyClient::WaitAll,
           "Blocks until all parameters for this step are in the replica.")
      .def("ready", &PyClient::Ready, "tensor"_a, "gradient"_a,
           "Passes the gradient of TENSOR, a contiguous fp32 array that must not change before "
           "end_step returns. Returns at once; the values are not copied.")
      .def("end_step", &PyClient::EndStep, "Blocks until all gradients are encoded.")
      .def("next_step", &PyClient::NextStep,
           "Blocks until the servers have judged all pushes, and returns the next step.")
      .def("leave", &PyClient::Leave, "finished"_a = false, "failed"_a = false, "diverged"_a = "",
           "Leaves every server, which shows why: after the last step, because of an error, or "
           "because the run has diverged (the symptom).")
      .def("close", &PyClient::Close,
           "Ends the client's threads. Arrays of the replica stay valid and no longer change.")
      .def(
          "replica",
          [](nb::handle self, uint32_t tensor) {
            return nb::cast<PyClient&>(self).Replica(tensor, self);
          },
          "tensor"_a, "Returns the parameters of TENSOR as a writable array without a copy.")
      .def_prop_ro("joined", &PyClient::joined, "Whether join has succeeded.")
      .def_prop_ro("in_step", &PyClient::in_step, "Whether a step has begun and not ended.")
      .def_prop_ro("closed", &PyClient::closed, "Whether the client can no longer be used.")
      .def_prop_ro(
          "durable",
          [](const PyClient& self) {
            return self.job().spec.recovery.durability != Durability::kNone;
          },
          "Whether the job has a durability other than none, so that join may be called again with "
          "the initial values.")
      .def_prop_ro(
          "learning_rate",
          [](const PyClient& self) { return self.job().described().schedule.learning_rate; },
          "The setting learning_rate of the job.")
      .def_prop_ro(
          "group_rate_factors",
          [](const PyClient& self) {
            std::vector<double> factors;
            for (const GroupSpec& group : self.job().described().AllGroups()) {
              factors.push_back(group.learning_rate_factor);
            }
            return factors;
          },
          "The factors of the learning rate of all parameter groups. Group 0 has the tensors that "
          "no "
          "group of the job matches.")
      .def_prop_ro(
          "groups",
          [](const PyClient& self) {
            std::vector<TensorShape> tensors = self.tensors();
            self.Check(PlaceTensors(self.job().described().AllGroups(), tensors));
            std::vector<uint32_t> groups;
            for (const TensorShape& tensor : tensors) groups.push_back(tensor.group);
            return groups;
          },
          "The parameter group of each tensor.")
      .def_prop_ro(
          "holds_average",
          [](const PyClient& self) { return Traits(self.job().spec.optimizer.kind).holds_average; },
          "Whether the servers hold mean gradients in place of parameters.")
      .def_prop_ro(
          "workers", [](const PyClient& self) { return self.job().spec.rule.workers; },
          "The number of workers at the start of the job, or of those of the site.")
      .def_prop_ro(
          "sites", [](const PyClient& self) { return self.job().site_count(); },
          "The number of sites of the job; 1 without sites.");
  return client;
}

}  // namespace thinwire
