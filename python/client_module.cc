// The Python module thinwire._client: the classes Client and Sampler, the exceptions, and functions
// for jobs.
#include <glog/logging.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "config/effective.h"
#include "config/job_text.h"
#include "python/client_class.h"
#include "python/errors.h"
#include "python/job_settings.h"
#include "python/py_client.h"
#include "python/sampler_module.h"
#include "python/streaming.h"

namespace nb = nanobind;

NB_MODULE(_client, module) {
  using namespace nb::literals;  // NOLINT: "name"_a
  FLAGS_logtostderr = true;
  if (!google::IsGoogleLoggingInitialized()) google::InitGoogleLogging("thinwire");
  // Objects that live until the end of a process are common in Python and are not leaks.
  nb::set_leak_warnings(false);

  module.doc() = "The client of a thinwire worker (client/client.h). Programs use thinwire.torch.";
  thinwire::AddErrors(module);
  module.def("setting_names", &thinwire::JobSettingNames,
             "Returns the names of the settings of a job file without its task.");
  module.def(
      "job_text",
      [](const std::string& config, const std::vector<thinwire::Setting>& settings) {
        return thinwire::EffectiveText(thinwire::MakeJob(config, settings).config);
      },
      "config"_a, "settings"_a,
      "Returns the text of the job file for the servers. CONFIG is the path of a job file or ''. "
      "SETTINGS are tuples of a name, a list of values, and the place for messages.");
  module.def(
      "file_workers",
      [](const std::string& config) {
        const absl::StatusOr<thinwire::JobText> job = thinwire::ReadJobFile(config);
        if (!job.ok()) thinwire::Raise("Error", std::string(job.status().message()));
        return job->config.consistency().workers();
      },
      "config"_a, "Returns the number of workers in the job file CONFIG, or its default.");
  module.def("claim_number", &thinwire::ClaimNumberForPython, "config"_a, "addresses"_a,
             "credentials"_a, "insecure"_a, "state_dir"_a,
             "Returns a free worker number, which server 0 reserves for this process.");
  thinwire::AddSampler(module);
  nb::class_<thinwire::PyClient> client = thinwire::AddClient(module);
  thinwire::AddClientParts(client);
  thinwire::AddStreaming(module);
}
