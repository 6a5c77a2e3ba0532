// SPDX-License-Identifier: Apache-2.0
// A small convolutional network and all of its training but the operators: the layers of either interface
// plug in.
//
//   12x12 images of four sorts of stripes, in noise
//   conv 3x3, 8 -> relu -> mean of 2x2 -> conv 3x3, 16 -> relu -> mean of the plane -> conv 1x1, 4 -> softmax
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "sample.h"

namespace sample {

using Values = std::vector<float>;

struct ConvGradients {
  Values input, weight, bias;
};

// The same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  double uniform() {  // [0, 1)
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) / (1 << 24);
  }
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  uint64_t state_;
};

const int kImages = 64, kSide = 12, kClasses = 4;

struct Batch {
  Values images;
  std::vector<int> labels;
};

// Stripes three pixels wide along x, y, x + y or x - y, anywhere, of any sign, and as much noise.
inline Batch draw(Random& random) {
  Batch batch;
  for (int n = 0; n < kImages; ++n) {
    const int label = static_cast<int>(random.uniform() * kClasses);
    const int shift = static_cast<int>(random.uniform() * 6);
    batch.labels.push_back(label);
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x) {
        const int along = (label == 0 ? x : label == 1 ? y : label == 2 ? x + y : x - y + kSide) + shift;
        batch.images.push_back(static_cast<float>((along / 3 % 2 == 0 ? 1 : -1) + 0.7 * random.normal()));
      }
  }
  return batch;
}

inline void relu(Values& values) {
  for (float& value : values) value = value > 0 ? value : 0;
}
// What is left of a gradient behind a relu that gave `values`.
inline void relu_gradient(const Values& values, Values& gradient) {
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] <= 0) gradient[i] = 0;
}

// The mean loss; the logits become its gradient. Counts what is classified right.
inline double cross_entropy(Values& logits, const std::vector<int>& labels, int& right) {
  double loss = 0;
  right = 0;
  for (size_t n = 0; n < labels.size(); ++n) {
    float* const own = logits.data() + n * kClasses;
    const int label = labels[n];
    double sum = 0;
    int best = 0;
    for (int c = 1; c < kClasses; ++c)
      if (own[c] > own[best]) best = c;
    right += best == label ? 1 : 0;
    const double top = static_cast<double>(own[best]);
    for (int c = 0; c < kClasses; ++c) sum += std::exp(static_cast<double>(own[c]) - top);
    loss -= static_cast<double>(own[label]) - top - std::log(sum);
    for (int c = 0; c < kClasses; ++c) {
      const double share = std::exp(static_cast<double>(own[c]) - top) / sum;
      own[c] = static_cast<float>((share - (c == label ? 1 : 0)) / static_cast<double>(labels.size()));
    }
  }
  return loss / static_cast<double>(labels.size());
}

// Conv: (session, input shape, weight shape, padding); forward(x, w, b), backward(dy, x, w).
// Pool: (session, input shape, window); forward(x), backward(dy).
template <class Session, class Conv, class Pool>
class Network {
 public:
  explicit Network(const Session& session)
      : first_(session, {kImages, 1, 12, 12}, {8, 1, 3, 3}, 1),
        halve_(session, {kImages, 8, 12, 12}, 2),
        second_(session, {kImages, 8, 6, 6}, {16, 8, 3, 3}, 1),
        whole_(session, {kImages, 16, 6, 6}, 6),
        last_(session, {kImages, 16, 1, 1}, {kClasses, 16, 1, 1}, 0) {
    Random random(7);
    const int weights[] = {8 * 9, 16 * 8 * 9, kClasses * 16}, biases[] = {8, 16, kClasses},
              terms[] = {9, 72, 16};
    for (int layer = 0; layer < 3; ++layer) {
      Values weight(static_cast<size_t>(weights[layer]));
      for (float& value : weight) value = static_cast<float>(random.normal() * std::sqrt(2.0 / terms[layer]));
      parameters.push_back(weight);
      parameters.push_back(Values(static_cast<size_t>(biases[layer]), 0.0f));
    }
  }

  // One pass there; and back, where gradients are wanted.
  double loss(const Batch& batch, std::vector<Values>* gradients) {
    const std::vector<Values>& p = parameters;
    Values a = first_.forward(batch.images, p[0], p[1]);
    relu(a);
    const Values b = halve_.forward(a);
    Values c = second_.forward(b, p[2], p[3]);
    relu(c);
    const Values d = whole_.forward(c);
    Values logits = last_.forward(d, p[4], p[5]);
    const double loss = cross_entropy(logits, batch.labels, right);
    if (gradients == nullptr) return loss;
    const ConvGradients third = last_.backward(logits, d, p[4]);
    Values back = whole_.backward(third.input);
    relu_gradient(c, back);
    const ConvGradients second = second_.backward(back, b, p[2]);
    back = halve_.backward(second.input);
    relu_gradient(a, back);
    const ConvGradients first = first_.backward(back, batch.images, p[0]);
    *gradients = {first.weight, first.bias, second.weight, second.bias, third.weight, third.bias};
    return loss;
  }

  std::vector<Values> parameters;  // weight and bias of each layer
  int right = 0;                   // of the last batch

 private:
  Conv first_;
  Pool halve_;
  Conv second_;
  Pool whole_;
  Conv last_;
};

// Differences of the loss against the gradients, at some parameters of every layer; how many disagree.
template <class Net>
int check_gradients(Net& net, const Batch& batch) {
  std::vector<Values> gradients;
  net.loss(batch, &gradients);
  double worst = 0;
  int wrong = 0;
  for (size_t list = 0; list < gradients.size(); ++list)
    for (size_t i = 0; i < gradients[list].size(); i += 1 + gradients[list].size() / 5) {
      const float step = 0.01f, at = net.parameters[list][i];
      net.parameters[list][i] = at + step;
      const double above = net.loss(batch, nullptr);
      net.parameters[list][i] = at - step;
      const double below = net.loss(batch, nullptr);
      net.parameters[list][i] = at;
      const double difference = (above - below) / (2 * static_cast<double>(step));
      const double error = std::fabs(difference - static_cast<double>(gradients[list][i]));
      worst = error > worst ? error : worst;
      // A step may carry a few pixels over the corner of a relu.
      if (!(error <= 2e-3 + 0.03 * std::fabs(difference))) {
        std::printf("  parameter %zu of list %zu: gradient %g, difference %g\n", i, list,
                    static_cast<double>(gradients[list][i]), difference);
        ++wrong;
      }
    }
  std::printf("gradients against differences: worst error %.2g, %d wrong\n", worst, wrong);
  return wrong;
}

// Adam, from random weights to the last step; 0 where the gradients are right and more than 95 % of images
// that it has not seen are classified right.
template <class Net>
int train(Net& net) {
  Random random(1);
  const int steps = 150, tests = 16;
  if (check_gradients(net, draw(random)) != 0) return 1;
  std::vector<Values> mean = net.parameters, square = net.parameters;
  for (std::vector<Values>* moments : {&mean, &square})
    for (Values& values : *moments) values.assign(values.size(), 0.0f);
  for (int step = 1; step <= steps; ++step) {
    std::vector<Values> gradients;
    const double loss = net.loss(draw(random), &gradients);
    const double rate = 0.01 * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step));
    for (size_t list = 0; list < gradients.size(); ++list)
      for (size_t i = 0; i < gradients[list].size(); ++i) {
        const float g = gradients[list][i];
        float &m = mean[list][i], &s = square[list][i];
        m = 0.9f * m + 0.1f * g;
        s = 0.999f * s + 0.001f * g * g;
        net.parameters[list][i] -=
            static_cast<float>(rate * static_cast<double>(m) / (std::sqrt(static_cast<double>(s)) + 1e-8));
      }
    if (step == 1 || step % 15 == 0)
      std::printf("step %3d  loss %.4f  right %d of %d\n", step, loss, net.right, kImages);
  }
  int right = 0;
  for (int i = 0; i < tests; ++i) {
    net.loss(draw(random), nullptr);
    right += net.right;
  }
  const double accuracy = 100.0 * right / (tests * kImages);
  std::printf("%.1f %% of %d new images are right\n", accuracy, tests * kImages);
  return accuracy > 95 ? 0 : 1;
}

}  // namespace sample
