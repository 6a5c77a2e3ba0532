// SPDX-License-Identifier: Apache-2.0
// Tensors beyond 2^31 elements. Their values repeat after a prime number of elements, so that a sample of
// results is computed here, and wrong offsets meet wrong values.
#include <cstdio>
#include <random>
#include <vector>

#include "cuda_fixture.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "support/legal_problem.h"

namespace retrograd::test {
namespace {

using problem::Operand;

constexpr size_t kPeriod = 1048573;
constexpr int64_t kSide = 5800, kChannels = 64;  // 64 · 5800² is 2^31 and 5 million more
constexpr int64_t kPlace = kSide * kSide;

// A tensor of FP32 on the GPU, value(i) = pattern[i % kPeriod].
class Periodic {
 public:
  Periodic(runtime::Device& gpu, size_t count, unsigned seed) : gpu_(gpu), count_(count), pattern_(kPeriod) {
    std::mt19937 random(seed);
    for (float& value : pattern_) value = static_cast<float>(static_cast<int>(random() % 5) - 2);
    block_ = static_cast<float*>(gpu.allocate(count * sizeof(float)).value());
    size_t filled = std::min(kPeriod, count);
    EXPECT_TRUE(gpu.copy(block_, pattern_.data(), filled * sizeof(float)).is_ok());
    while (filled < count) {
      const size_t more = std::min(filled, count - filled);
      EXPECT_TRUE(gpu.copy(block_ + filled, block_, more * sizeof(float)).is_ok());
      filled += more;
    }
  }
  ~Periodic() { gpu_.deallocate(block_); }
  float operator[](int64_t i) const { return pattern_[static_cast<size_t>(i) % kPeriod]; }
  // What is there now.
  float read(int64_t i) const {
    float value = 0;
    EXPECT_TRUE(gpu_.copy(&value, block_ + i, sizeof(float)).is_ok());
    return value;
  }
  float* data() const { return block_; }

 private:
  runtime::Device& gpu_;
  size_t count_;
  std::vector<float> pattern_;
  float* block_;
};

class CudaLargeTest : public runtime::CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    constexpr size_t kNeeded = size_t{36} << 30;
    const size_t free = gpu().memory_info().value().free_bytes;
    if (free < kNeeded)
      GTEST_SKIP() << "needs 36 GiB of free GPU memory, " << (free >> 30) << " GiB are there";
  }
  void run(const char* text, const engines::Bindings& bindings) {
    const problem::Problem problem = legal_problem(problem::parse_request(text).value());
    const auto plan = plan::make_plan(problem, gpu(), "test");
    ASSERT_TRUE(plan.is_ok()) << plan.status().message();
    std::printf("%s\n", plan.value()->describe().c_str());
    const size_t bytes = plan.value()->workspace_bytes();
    void* const workspace = gpu().allocate(bytes + 1).value();
    const auto stream = gpu().null_stream();
    const Status status = plan::Plan::execute(plan.value(), bindings, workspace, bytes, *stream);
    EXPECT_TRUE(status.is_ok()) << status.message();
    EXPECT_TRUE(stream->synchronize().is_ok());
    gpu().deallocate(workspace);
  }
  // First, last, around 2^31 elements and 2^31 bytes, and at random.
  static std::vector<int64_t> sample(int64_t count) {
    std::vector<int64_t> places = {0, 1, count - 1, count - 2};
    for (int shift = 29; shift <= 31; ++shift)
      for (int64_t near = -2; near < 2; ++near)
        if ((int64_t{1} << shift) + near < count) places.push_back((int64_t{1} << shift) + near);
    std::mt19937_64 random(5);
    for (int i = 0; i < 300; ++i)
      places.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(count)));
    return places;
  }
};

TEST_F(CudaLargeTest, AveragePooling) {
  const Periodic y(gpu(), kChannels * kPlace / 4, 1), x(gpu(), kChannels * kPlace, 2);
  engines::Bindings bindings;
  bindings.set(Operand::kGradOutput, y.data());
  bindings.set(Operand::kInput, x.data());
  bindings.set(Operand::kGradInput, x.data());
  run("avgpool input=1x64x5800x5800 kernel=2x2 stride=2x2", bindings);
  for (const int64_t i : sample(kChannels * kPlace)) {
    const int64_t c = i / kPlace, h = i % kPlace / kSide, w = i % kSide;
    ASSERT_EQ(x.read(i), y[(c * (kSide / 2) + h / 2) * (kSide / 2) + w / 2] / 4) << i;
  }
}

TEST_F(CudaLargeTest, DepthwiseConvolution) {
  const Periodic y(gpu(), kChannels * kPlace, 1), x(gpu(), kChannels * kPlace, 2), w(gpu(), kChannels * 9, 3);
  const Periodic gx(gpu(), kChannels * kPlace, 4), gw(gpu(), kChannels * 9, 5), gb(gpu(), kChannels, 6);
  engines::Bindings bindings;
  bindings.set(Operand::kGradOutput, y.data());
  bindings.set(Operand::kInput, x.data());
  bindings.set(Operand::kWeight, w.data());
  bindings.set(Operand::kGradInput, gx.data());
  bindings.set(Operand::kGradWeight, gw.data());
  bindings.set(Operand::kGradBias, gb.data());
  run("conv input=1x64x5800x5800 weight=64x1x3x3 padding=1x1 groups=64", bindings);
  const auto at = [](int64_t c, int64_t h, int64_t v) { return c * kPlace + h * kSide + v; };
  const auto inside = [](int64_t p) { return p >= 0 && p < kSide; };
  for (const int64_t i : sample(kChannels * kPlace)) {
    const int64_t c = i / kPlace, h = i % kPlace / kSide, v = i % kSide;
    float sum = 0;
    for (int64_t kh = 0; kh < 3; ++kh)
      for (int64_t kw = 0; kw < 3; ++kw)
        if (inside(h + 1 - kh) && inside(v + 1 - kw))
          sum += y[at(c, h + 1 - kh, v + 1 - kw)] * w[c * 9 + kh * 3 + kw];
    ASSERT_EQ(gx.read(i), sum) << i;
  }
  for (const int64_t c : {int64_t{0}, kChannels - 1}) {
    double weight = 0, bias = 0;  // of the last tap
    for (int64_t h = 0; h < kSide; ++h)
      for (int64_t v = 0; v < kSide; ++v) {
        bias += y[at(c, h, v)];
        if (inside(h + 1) && inside(v + 1)) weight += x[at(c, h + 1, v + 1)] * y[at(c, h, v)];
      }
    EXPECT_EQ(gw.read(c * 9 + 8), static_cast<float>(weight)) << c;
    EXPECT_EQ(gb.read(c), static_cast<float>(bias)) << c;
  }
}

TEST_F(CudaLargeTest, PointwiseConvolution) {
  constexpr int64_t kOut = 8;
  const Periodic y(gpu(), kOut * kPlace, 1), x(gpu(), kChannels * kPlace, 2), w(gpu(), kOut * kChannels, 3);
  const Periodic gx(gpu(), kChannels * kPlace, 4), gw(gpu(), kOut * kChannels, 5), gb(gpu(), kOut, 6);
  engines::Bindings bindings;
  bindings.set(Operand::kGradOutput, y.data());
  bindings.set(Operand::kInput, x.data());
  bindings.set(Operand::kWeight, w.data());
  bindings.set(Operand::kGradInput, gx.data());
  bindings.set(Operand::kGradWeight, gw.data());
  bindings.set(Operand::kGradBias, gb.data());
  run("conv input=1x64x5800x5800 weight=8x64x1x1", bindings);
  for (const int64_t i : sample(kChannels * kPlace)) {
    float sum = 0;
    for (int64_t o = 0; o < kOut; ++o) sum += y[o * kPlace + i % kPlace] * w[o * kChannels + i / kPlace];
    ASSERT_EQ(gx.read(i), sum) << i;
  }
  double weight = 0;
  for (int64_t p = 0; p < kPlace; ++p) weight += x[(kChannels - 1) * kPlace + p] * y[(kOut - 1) * kPlace + p];
  EXPECT_EQ(gw.read(kOut * kChannels - 1), static_cast<float>(weight));
}

}  // namespace
}  // namespace retrograd::test
