#include "proto/diverging_pairs.h"

#include "absl/strings/str_cat.h"
#include "proto/pull_choice.h"

namespace thinwire {
namespace {

// Of the values, each wide enough for what it is measured with.
constexpr double kLeastDensityBesideSlots = 0.1;
constexpr double kLeastDensityBesideCorrection = 0.002;

class Pairs {
 public:
  Pairs(const Consistency& consistency, const Optimization& optimization,
        const Compression& compression)
      : consistency_(consistency),
        optimization_(optimization),
        compression_(compression),
        pull_(ParsePull(compression.pull())) {}

  std::vector<PairProblem> Find() {
    if (pull_.deltas && (pull_.codec == "topk" || pull_.codec == "randomk")) CheckSparsePull();
    if (compression_.momentum_correction() && HasMomentum()) {
      Add("momentum_correction",
          absl::StrCat(": want false beside optimizer ", optimization_.optimizer(),
                       ", which has a momentum of its own (choose optimizer sgd), got true"));
    }
    if (compression_.publish_every() != 0) CheckPublishEvery();
    return std::move(problems_);
  }

 private:
  bool HasMomentum() const {
    return optimization_.optimizer() != "sgd" && optimization_.optimizer() != "adagrad";
  }

  void CheckSparsePull() {
    if (optimization_.optimizer() != "sgd" && !optimization_.lazy_slots()) {
      CheckWidth(kLeastDensityBesideSlots, true,
                 absl::StrCat("optimizer ", optimization_.optimizer(), " without lazy_slots"),
                 "pull delta with lazy_slots, or pull delta_fp8_e5m2");
    }
    if (compression_.momentum_correction()) {
      CheckWidth(kLeastDensityBesideCorrection, compression_.density_warmup() > 0,
                 "momentum_correction", "pull delta");
    }
  }

  // Only topk was ever wide enough beside BESIDE.
  void CheckWidth(double least_density, bool warmed_up, const std::string& beside,
                  const std::string& instead) {
    const bool wide = compression_.pull_density() >= least_density;
    if (pull_.codec == "topk" && wide && warmed_up) return;
    std::string wanted = absl::StrCat("delta_topk of pull_density ", least_density, " or more");
    if (!warmed_up) absl::StrAppend(&wanted, " and a density_warmup above 0");
    Add("pull", absl::StrCat(": want ", wanted, " beside ", beside, " (or choose ", instead,
                             "), for this diverges, got ", compression_.pull(), " of pull_density ",
                             compression_.pull_density()));
  }

  void CheckPublishEvery() {
    const std::string& mode = consistency_.mode();
    if (!pull_.deltas) {
      Add("publish_every",
          absl::StrCat(": want 0, for it is of pull delta only, got ", compression_.publish_every(),
                       " with pull ", compression_.pull()));
    } else if (mode != "ssp" && mode != "async") {
      Add("publish_every", absl::StrCat(": want 0, for it is of modes ssp and async only, got ",
                                        compression_.publish_every(), " in mode ", mode));
    }
  }

  void Add(std::string field, std::string text) {
    problems_.push_back({std::move(field), std::move(text)});
  }

  const Consistency& consistency_;
  const Optimization& optimization_;
  const Compression& compression_;
  const PullChoice pull_;
  std::vector<PairProblem> problems_;
};

}  // namespace

std::vector<PairProblem> DivergingPairs(const Consistency& consistency,
                                        const Optimization& optimization,
                                        const Compression& compression) {
  return Pairs(consistency, optimization, compression).Find();
}

}  // namespace thinwire
