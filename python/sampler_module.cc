#include "python/sampler_module.h"

#include <nanobind/stl/vector.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "worker/batches/sampler.h"

namespace nb = nanobind;

namespace thinwire {
namespace {

// A Sampler of numbers and lists.
class PySampler {
 public:
  explicit PySampler(const SamplerOptions& options)
      : batch_size_(options.batch_size), sampler_(options) {}

  void Add(const nb::bytes& text) {
    Deal deal;
    if (!deal.ParseFromArray(text.c_str(), static_cast<int>(text.size()))) {
      throw std::invalid_argument("deal: wrong bytes (expected those of Client.await_deals)");
    }
    sampler_.Add(deal);
  }

  std::vector<std::vector<uint32_t>> Batches(uint64_t step) {
    std::vector<std::vector<uint32_t>> batches;
    for (const std::span<const uint32_t> part : Parts(sampler_.Batch(Step{step}), batch_size_)) {
      batches.emplace_back(part.begin(), part.end());
    }
    return batches;
  }

  void ForgetDeals() { sampler_.ForgetDeals(); }
  size_t deal_count() const { return sampler_.deal_count(); }
  uint64_t EpochOf(uint64_t step) const { return sampler_.epoch(Step{step}); }
  uint64_t EpochBegin(uint64_t epoch) const { return sampler_.EpochBegin(epoch).value; }

 private:
  const uint32_t batch_size_;
  Sampler sampler_;
};

}  // namespace

void AddSampler(nb::module_& module) {
  using namespace nb::literals;  // NOLINT: "name"_a
  nb::class_<PySampler>(
      module, "Sampler",
      "Which examples a worker takes in which step (worker/batches/sampler.h). All "
      "numbers are positive, except the worker's, the seed and the site's, which is below SITES.")
      .def(
          "__init__",
          [](PySampler* self, uint64_t example_count, uint32_t worker, uint32_t workers,
             uint32_t batch_size, uint32_t batch_count, uint64_t seed, uint32_t site,
             uint32_t sites) {
            new (self) PySampler({.example_count = example_count,
                                  .worker = WorkerId{worker},
                                  .workers = workers,
                                  .batch_size = batch_size,
                                  .batch_count = batch_count,
                                  .seed = seed,
                                  .share = {.site = site, .sites = sites}});
          },
          "example_count"_a, "worker"_a, "workers"_a, "batch_size"_a, "batch_count"_a = 1,
          "seed"_a = 1, "site"_a = 0, "sites"_a = 1)
      .def("add", &PySampler::Add, "deal"_a, "Adds the next deal, a result of Client.await_deals.")
      .def("forget_deals", &PySampler::ForgetDeals, "Removes all deals, after a rollback.")
      .def_prop_ro("deal_count", &PySampler::deal_count, "The number of the newest deal.")
      .def("epoch", &PySampler::EpochOf, "step"_a, "Returns the epoch of a step, from 0.")
      .def("epoch_begin", &PySampler::EpochBegin, "epoch"_a,
           "Returns the first step of an epoch, unless later deals change it.")
      .def(
          "batches", &PySampler::Batches, "step"_a,
          "Returns the examples of a step, in batches of batch_size. The last one may be smaller.");
}

}  // namespace thinwire
