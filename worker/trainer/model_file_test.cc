#include "worker/trainer/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/files/safetensors.h"
#include "common/spec/task_spec.h"
#include "worker/models/factory.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

using Parameters = std::vector<std::vector<float>>;

std::unique_ptr<Model> Make(ModelKind kind, uint64_t seed = 1, int64_t classes = 3) {
  const TaskSpec task = {.model = kind, .seed = seed, .device = "cpu"};
  return MakeModel(task, {.shape = {1, 8, 8}, .class_count = classes}).value();
}

// Copies the initial parameters of MODEL to PARAMETERS and binds the model to them.
void Bind(Model& model, Parameters& parameters) {
  for (uint32_t i = 0; i < model.tensors().size(); ++i) {
    const std::span<const float> values = model.initial(i);
    parameters.emplace_back(values.begin(), values.end());
  }
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    model.Bind(i, parameters[i], Model::Place::kHost);
  }
}

std::vector<uint8_t> Bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ModelFileTest : public ::testing::Test {
 protected:
  std::string Problem(Model& model) {
    const absl::Status status = ReadModelFile(path_, model).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StartsWith(status.message(), path_)) << status;
    return std::string(status.message());
  }

  const std::string path_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ModelFileTest, AFileRestoresParametersAndBuffers) {
  const std::unique_ptr<Model> trained = Make(ModelKind::kResnet20);
  Parameters parameters;
  Bind(*trained, parameters);
  const std::vector<float> x(2 * 64, 0.5f);
  const std::vector<int64_t> labels = {0, 2};
  const Batch batch = {.x = x, .labels = labels};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(trained->UpdateBuffers(batch).ok());
  ASSERT_TRUE(WriteModelFile(path_, *trained, parameters, {{"job", "train"}}).ok());

  const std::unique_ptr<Model> other = Make(ModelKind::kResnet20, /*seed=*/2);
  absl::StatusOr<Parameters> read = ReadModelFile(path_, *other);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, parameters);
  EXPECT_EQ(*other->Buffers(), *trained->Buffers());
  for (uint32_t i = 0; i < read->size(); ++i) other->Bind(i, (*read)[i], Model::Place::kHost);
  EXPECT_EQ(*other->Evaluate(batch), *trained->Evaluate(batch));
}

TEST_F(ModelFileTest, TheNamesAreThoseOfPyTorch) {
  const std::unique_ptr<Model> model = Make(ModelKind::kResnet20);
  Parameters parameters;
  Bind(*model, parameters);
  ASSERT_TRUE(WriteModelFile(path_, *model, parameters, {}).ok());
  const std::vector<uint8_t> bytes = Bytes(path_);
  const SafetensorsIndex index = ParseSafetensors(bytes, path_).value();
  for (const char* name :
       {"conv.weight", "bn.weight", "bn.bias", "stage1.block1.conv1.weight",
        "stage3.block3.bn2.running_mean", "stage3.block3.bn2.running_var", "dense.bias"}) {
    ASSERT_TRUE(index.contains(name)) << name;
    EXPECT_EQ(index.at(name).dtype, "F32");
  }
  const SafetensorsEntry& count = index.at("bn.num_batches_tracked");
  EXPECT_EQ(count.dtype, "I64");
  EXPECT_TRUE(count.shape.empty());
  // 19 convolutions with batch normalization have one parameter and five tensors of the
  // normalization; the dense layer has two parameters.
  EXPECT_EQ(index.size(), 19 * 6 + 2);
  const std::string header(bytes.begin() + 8, bytes.begin() + 4096);
  EXPECT_THAT(header, HasSubstr(R"("__metadata__":{"format":"pt"})"));
}

TEST_F(ModelFileTest, EveryTensorIsAlignedToItsValues) {
  const std::unique_ptr<Model> model = Make(ModelKind::kResnet20);
  Parameters parameters;
  Bind(*model, parameters);
  ASSERT_TRUE(WriteModelFile(path_, *model, parameters, {}).ok());
  const std::vector<uint8_t> bytes = Bytes(path_);
  const SafetensorsIndex index = ParseSafetensors(bytes, path_).value();
  ASSERT_FALSE(index.empty());
  for (const auto& [name, entry] : index) {
    const uint64_t size = entry.dtype == "I64" ? 8 : 4;
    EXPECT_EQ((entry.bytes.data() - bytes.data()) % size, 0u) << name;
  }
}

TEST_F(ModelFileTest, AnotherModelIsRefusedWithTheTensor) {
  const std::unique_ptr<Model> mlp = Make(ModelKind::kMlp);
  Parameters parameters;
  Bind(*mlp, parameters);
  ASSERT_TRUE(WriteModelFile(path_, *mlp, parameters, {}).ok());
  EXPECT_THAT(Problem(*Make(ModelKind::kSoftmax)),
              HasSubstr(": tensor \"dense.weight\" is missing (expected F32 [3, 64])"));
  EXPECT_THAT(Problem(*Make(ModelKind::kMlp, 1, /*classes=*/5)),
              HasSubstr(": tensor \"dense3.weight\": wrong type or shape (expected F32 [5, 128], "
                        "got F32 [3, 128])"));
}

TEST_F(ModelFileTest, ATensorThatTheModelDoesNotHaveIsRefused) {
  const std::unique_ptr<Model> model = Make(ModelKind::kSoftmax);
  const std::string header = SafetensorsHeader(std::vector<SafetensorsTensor>{
      {"dense.weight", "F32", {3, 64}, 768}, {"dense.bias", "F32", {3}, 12}, {"w", "U8", {1}, 1}});
  std::ofstream(path_, std::ios::binary) << header << std::string(768 + 12 + 1, '\0');
  EXPECT_THAT(Problem(*model), HasSubstr(": the model has no tensor \"w\" (got 1 tensor that"));
}

TEST_F(ModelFileTest, AnotherKindOfFileIsNamed) {
  const std::unique_ptr<Model> model = Make(ModelKind::kSoftmax);
  std::ofstream(path_) << "task { model: softmax }";
  EXPECT_THAT(Problem(*model),
              HasSubstr(": not a model file (expected a safetensors file, got a text)"));
  std::ofstream(path_, std::ios::binary) << "PK\x03\x04 zip";
  EXPECT_THAT(Problem(*model), HasSubstr("got a zip archive, such as a TorchScript"));
  std::filesystem::resize_file(path_, 0);
  EXPECT_THAT(Problem(*model), HasSubstr("got an empty file"));
  std::filesystem::remove(path_);
  EXPECT_TRUE(absl::IsNotFound(ReadModelFile(path_, *model).status()));
}

}  // namespace
}  // namespace thinwire
