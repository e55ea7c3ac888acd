// Provides the comments of proto/job.proto as help texts of the flags. The text of job.proto is
// compiled into the program.
#ifndef THINWIRE_CONFIG_FIELD_DOCS_H_
#define THINWIRE_CONFIG_FIELD_DOCS_H_

#include <map>
#include <string>

namespace thinwire {

// Maps MESSAGE.FIELD to the field's comment. Example: "Compression.density" maps to "push topk and
// randomk: the part of a shard's values that is sent."
using FieldDocs = std::map<std::string, std::string>;

// Returns the comment lines directly above each field of each message of PROTO, joined by spaces.
// Enums and nested messages have no entries.
FieldDocs ParseFieldDocs(const std::string& proto);

// Returns the comments of proto/job.proto.
FieldDocs JobFieldDocs();

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_FIELD_DOCS_H_
