// Adds the class Client, which is PyClient, to the Python module thinwire._client.
#ifndef THINWIRE_PYTHON_CLIENT_CLASS_H_
#define THINWIRE_PYTHON_CLIENT_CLASS_H_

#include <nanobind/nanobind.h>

#include "python/py_client.h"

namespace thinwire {

// Adds the class with the calls of a training loop.
nanobind::class_<PyClient> AddClient(nanobind::module_& module);
// Adds the calls of the client's parts (client/parts/) and its counters to the class.
void AddClientParts(nanobind::class_<PyClient>& client);

}  // namespace thinwire

#endif  // THINWIRE_PYTHON_CLIENT_CLASS_H_
