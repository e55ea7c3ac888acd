#include "python/errors.h"

#include "absl/strings/str_cat.h"

namespace nb = nanobind;

namespace thinwire {
namespace {

const char* ExceptionOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return "ServerLostError";
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return "RefusedError";
    default:
      return "Error";
  }
}

void Add(nb::module_& module, const char* name, nb::handle base, const char* doc) {
  const std::string full_name = absl::StrCat("thinwire.", name);
  PyObject* const type =
      PyErr_NewExceptionWithDoc(full_name.c_str(), doc, base.ptr(), /*dict=*/nullptr);
  if (type == nullptr) throw nb::python_error();
  module.attr(name) = nb::steal(type);
}

}  // namespace

void AddErrors(nb::module_& module) {
  Add(module, "Error", PyExc_RuntimeError, "An error of thinwire.");
  const nb::object error = module.attr("Error");
  Add(module, "RefusedError", error,
      "The servers do not admit this worker: another job, model or number.");
  Add(module, "ServerLostError", error, "A server did not respond in time.");
  Add(module, "DivergedError", error, "Training has diverged: gradients stay infinite or NaN.");
  Add(module, "RolledBack", error, "The servers continue from an earlier step. Join again.");
}

void Raise(const char* name, const std::string& text) {
  const nb::object type = nb::module_::import_("thinwire._client").attr(name);
  PyErr_SetString(type.ptr(), text.c_str());
  throw nb::python_error();
}

void Raise(const absl::Status& status) {
  Raise(ExceptionOf(status), std::string(status.message()));
}

}  // namespace thinwire
