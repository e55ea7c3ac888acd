#include "server/core/rule.h"

namespace thinwire {

std::ostream& operator<<(std::ostream& out, const Rule& rule) {
  if (rule.fold == Fold::kPush) {
    if (rule.slack == kUnboundedSlack) {
      out << "async";
    } else {
      out << "ssp(" << rule.slack << ")";
    }
    return out << " of " << rule.workers << ", fold_every " << rule.fold_every;
  }
  if (rule.quorum < rule.workers) {
    return out << "backup " << rule.quorum << "+" << rule.workers - rule.quorum;
  }
  return out << "sync of " << rule.workers << (rule.ordered_fold ? ", ordered" : "");
}

}  // namespace thinwire
