#include "common/codec/codec.h"

#include "common/base/status_macros.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<const Codec>> MakeCodec(const CodecSpec& spec) {
  const CodecRow& row = RowOf(spec.id);
  RETURN_IF_ERROR(spec.Validate().ToStatus());
  return row.make(row, spec);
}

}  // namespace thinwire
