// ReadForm is the form in which a reader requests a shard's parameters.
//
//   a dense codec    the current masters, encoded with that codec
//   Published()      all published parameters
//   Since(version)   deltas from published version VERSION, which the reader holds, to the newest
//
// A value type.
#ifndef THINWIRE_SERVER_CORE_READ_FORM_H_
#define THINWIRE_SERVER_CORE_READ_FORM_H_

#include <optional>
#include <ostream>

#include "common/base/ids.h"
#include "common/codec/codec.h"

namespace thinwire {

struct ReadForm {
  ReadForm() = default;
  // Converts a dense codec implicitly to the form that requests the current masters in this codec.
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
  CodecId codec = CodecId::kFp32;  // the codec of the masters; unused if `published` is set
  std::optional<Version> held;     // the published version that the reader holds
  // The reader also receives all answers that its stream has sent before, so the deltas may begin
  // where the last of them ends.
  bool follows = false;

  bool operator==(const ReadForm&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const ReadForm& form) {
    if (!form.published) return out << form.codec;
    if (!form.held.has_value()) return out << "published";
    return out << "since " << *form.held;
  }
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_READ_FORM_H_
