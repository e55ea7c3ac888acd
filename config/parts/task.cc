#include "config/parts/task.h"

namespace thinwire {

TaskSpec TaskSpecOf(const Task& t) {
  return {.model = static_cast<ModelKind>(t.model()),
          .model_file = t.model_file(),
          .dataset = static_cast<DatasetKind>(t.dataset()),
          .data_dir = t.data_dir(),
          .batch_size = t.batch_size(),
          .epochs = t.epochs(),
          .seed = t.seed(),
          .device = t.device(),
          .threads = t.threads(),
          .train_examples = t.train_examples(),
          .test_examples = t.test_examples(),
          .precision = static_cast<Precision>(t.precision()),
          .loss_scale = t.loss_scale(),
          .loss_scale_interval = t.loss_scale_interval(),
          .stop_on_divergence = t.stop_on_divergence(),
          .local = {.count = t.local_steps(),
                    .optimizer = static_cast<LocalOptimizerKind>(t.local_optimizer()),
                    .learning_rate = t.local_learning_rate(),
                    .momentum = t.local_momentum(),
                    .weight_decay = t.local_weight_decay(),
                    .fragments = t.fragments(),
                    .overlap = t.overlap_steps(),
                    .mixing = t.mixing(),
                    .by_speed = t.auto_local_steps()},
          .accumulate = t.accumulate(),
          .loss = static_cast<LossKind>(t.loss())};
}

namespace {

// Returns true if the local steps of CONFIG may go on while a part of the model is exchanged.
bool MayStream(const JobConfig& config) {
  const Consistency& consistency = config.consistency();
  // Limits of the norm need the whole gradient. A replay, the choice of a codec and the choice of a
  // rule follow the time of a step's pushes, which then contains local steps.
  return config.task().local_steps() > 1 && config.compression().gradient_clip() == 0 &&
         config.optimization().clip_norm() == 0 && !ChoosesPush(config) &&
         !config.recovery().keep_log() && !consistency.auto_backup() && !consistency.auto_slack() &&
         consistency.in_flight() == 0 && !consistency.delayed_gradient();
}

}  // namespace

std::vector<Condition> TaskConditions() {
  return {
      {{"model_file", "loss"},
       [](const JobConfig& c) { return c.task().model() == Task::Model::torchscript; },
       "model: torchscript",
       {"model"}},
      {{"loss_scale_interval"},
       [](const JobConfig& c) {
         return c.task().precision() == Task::Precision::fp16 || c.task().loss_scale() > 0;
       },
       "precision: fp16 or a loss_scale above 0",
       {"precision", "loss_scale"}},
      {{"local_optimizer", "local_learning_rate", "local_weight_decay"},
       [](const JobConfig& c) { return c.task().local_steps() > 1; },
       "local_steps above 1",
       {"local_steps"}},
      {{"local_momentum"},
       [](const JobConfig& c) {
         return c.task().local_steps() > 1 &&
                c.task().local_optimizer() == Task::LocalOptimizer::momentum;
       },
       "local_optimizer: momentum and local_steps above 1",
       {"local_optimizer", "local_steps"}},
      {{"fragments", "overlap_steps"},
       MayStream,
       "local_steps above 1, a push codec that is not chosen at run time, and without "
       "gradient_clip, clip_norm, keep_log, auto_backup, auto_slack, in_flight and "
       "delayed_gradient",
       {"local_steps", "push", "gradient_clip", "clip_norm", "keep_log", "auto_backup",
        "auto_slack", "in_flight", "delayed_gradient"}},
      {{"mixing"},
       [](const JobConfig& c) { return c.task().overlap_steps() > 0; },
       "overlap_steps above 0",
       {"overlap_steps"}},
      // The time of a step must contain its local steps and nothing else. It differs from run to run,
      // and a replay has none.
      {{"auto_local_steps"},
       [](const JobConfig& c) {
         return c.task().local_steps() > 1 && c.task().fragments() == 1 &&
                c.task().overlap_steps() == 0 && c.consistency().in_flight() == 0 &&
                !c.consistency().delayed_gradient() && !c.consistency().ordered_fold() &&
                !c.recovery().keep_log();
       },
       "local_steps above 1, and without fragments, overlap_steps, in_flight, delayed_gradient, "
       "ordered_fold and keep_log",
       {"local_steps", "fragments", "overlap_steps", "in_flight", "delayed_gradient",
        "ordered_fold", "keep_log"}},
  };
}

}  // namespace thinwire
