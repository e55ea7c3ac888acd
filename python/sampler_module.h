// The part of the Python module thinwire._client that deals examples: the class Sampler of
// worker/batches/sampler.h.
#ifndef THINWIRE_PYTHON_SAMPLER_MODULE_H_
#define THINWIRE_PYTHON_SAMPLER_MODULE_H_

#include <nanobind/nanobind.h>

namespace thinwire {

// Adds the class to MODULE.
void AddSampler(nanobind::module_& module);

}  // namespace thinwire

#endif  // THINWIRE_PYTHON_SAMPLER_MODULE_H_
