// ReadForm: how a reader wants a shard's parameters.
//
//   a codec          the masters of now, in that codec, which is dense
//   Published()      what was published, whole
//   Since(version)   what was published since VERSION, which the reader holds
//
// A value type.
#ifndef THINWIRE_SERVER_CORE_READ_FORM_H_
#define THINWIRE_SERVER_CORE_READ_FORM_H_

#include <optional>
#include <ostream>

#include "common/codec/codec.h"
#include "common/ids.h"

namespace thinwire {

struct ReadForm {
  ReadForm() = default;
  // A codec is a form: not explicit.
  ReadForm(CodecId masters) : codec(masters) {}

  static ReadForm Published() {
    ReadForm form;
    form.published = true;
    return form;
  }
  static ReadForm Since(Version version) {
    ReadForm form = Published();
    form.held = version;
    return form;
  }

  bool published = false;
  CodecId codec = CodecId::kFp32;  // of the masters
  std::optional<Version> held;     // of what is published

  bool operator==(const ReadForm&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const ReadForm& form) {
    if (!form.published) return out << form.codec;
    if (!form.held.has_value()) return out << "published";
    return out << "since " << *form.held;
  }
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_READ_FORM_H_
