// ClipFollower performs the Clip calls of the lead (clip_lead.h), at another server of a job with
// clip_norm.
#ifndef THINWIRE_SERVER_PROTOCOLS_CLIPPING_CLIP_FOLLOWER_H_
#define THINWIRE_SERVER_PROTOCOLS_CLIPPING_CLIP_FOLLOWER_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "server/protocols/clipping/clipper.h"

namespace thinwire {

class ClipFollower final : public Clipper {
 public:
  using Clipper::Clipper;

  // Closes the last round and replies with this server's part of the next one, when it is known.
  void Clip(const ClipRequest& request, std::function<void(absl::StatusOr<ClipReply>)> done);
  // Ends the lead's call with STATUS, and all waits.
  void Stop(const absl::Status& status) override;

 private:
  struct HeldReply {
    std::optional<Step> after;
    std::function<void(absl::StatusOr<ClipReply>)> done;
  };

  void Finished(const FullRound& /*part*/) override { ReplyIfDue(); }
  void ReplyIfDue();

  std::optional<HeldReply> reply_;  // the lead's call
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_CLIPPING_CLIP_FOLLOWER_H_
