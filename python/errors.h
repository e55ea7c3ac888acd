// The exceptions of the Python module thinwire._client: Error and its subclasses.
#ifndef THINWIRE_PYTHON_ERRORS_H_
#define THINWIRE_PYTHON_ERRORS_H_

#include <nanobind/nanobind.h>

#include <string>

#include "absl/status/status.h"

namespace thinwire {

// Adds the classes to MODULE.
void AddErrors(nanobind::module_& module);

// Raises the exception class NAME, such as "Error", with TEXT.
[[noreturn]] void Raise(const char* name, const std::string& text);
// Raises the exception of STATUS. REQUIRES: STATUS is not OK.
[[noreturn]] void Raise(const absl::Status& status);

}  // namespace thinwire

#endif  // THINWIRE_PYTHON_ERRORS_H_
