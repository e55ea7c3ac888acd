// Prints JSON values as YAML.
//
//   {"kind": "Pod", "spec": {"volumes": [{"name": "a", "size": 1}]}}     kind: Pod
//                                                                        spec:
//                                                                          volumes:
//                                                                            - name: a
//                                                                              size: 1
//
// Every string that YAML could read as another type is in double quotes.
#ifndef THINWIRE_CLI_K8S_YAML_TEXT_H_
#define THINWIRE_CLI_K8S_YAML_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace thinwire {

// Returns VALUE, an object or an array that is not empty, in YAML. The keys keep their order.
// REQUIRES: all strings are UTF-8.
std::string YamlText(const nlohmann::ordered_json& value);

}  // namespace thinwire

#endif  // THINWIRE_CLI_K8S_YAML_TEXT_H_
