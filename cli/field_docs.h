// FieldDocs: what config.proto says of each field, for --help. The file itself is built in, so that
// a knob is documented in one place.
#ifndef THINWIRE_CLI_FIELD_DOCS_H_
#define THINWIRE_CLI_FIELD_DOCS_H_

#include <map>
#include <string>

namespace thinwire {

// "Compression.push" -> "Of gradients: fp32, fp16, bf16, fp8_e5m2, fp8_e4m3 or topk."
using FieldDocs = std::map<std::string, std::string>;

// The comment lines right above each field of each message of PROTO, joined.
FieldDocs ParseFieldDocs(const std::string& proto);

// Of proto/config.proto.
FieldDocs ConfigFieldDocs();

}  // namespace thinwire

#endif  // THINWIRE_CLI_FIELD_DOCS_H_
