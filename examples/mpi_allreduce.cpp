// SPDX-License-Identifier: Apache-2.0
// Data-parallel gradients over MPI: every rank has a part of the batch and computes its gradients through
// infiniop, and MPI_Allreduce adds those of the weights. On integers all sums are exact, so the result is
// that of the whole batch on one rank, bit for bit. mpirun -n 2 mpi_allreduce
#include <mpi.h>

#include <cstring>

#include "infini_session.h"

namespace {

const int64_t kBatch = 8, kChannels = 6, kFilters = 10, kSide = 14;

struct Gradients {
  explicit Gradients(int64_t batch)
      : input({batch, kChannels, kSide, kSide}, 0.0f),
        weight({kFilters, kChannels, 3, 3}, 0.0f),
        bias({kFilters}, 0.0f) {}

  sample::Tensor input, weight, bias;
};

// Integers from -4 to 4. A sum of 8 * 14 * 14 products of two of them stays below 2^24: FP32 holds it
// exactly, in whatever order it is added.
sample::Tensor integers(const sample::Shape& shape, uint32_t seed) {
  sample::Tensor tensor(shape, 0.0f);
  for (float& value : tensor.values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int>(seed >> 16) % 9 - 4);
  }
  return tensor;
}

// Images first to first + count - 1 of a batch.
sample::Tensor part(const sample::Tensor& whole, int64_t first, int64_t count) {
  sample::Shape shape = whole.shape;
  const int64_t image = sample::product(shape.begin() + 1, shape.end());
  shape[0] = count;
  sample::Tensor result(shape, 0.0f);
  std::copy_n(whole.values.begin() + first * image, count * image, result.values.begin());
  return result;
}

Gradients backward(const sample::InfiniSession& session, const sample::Tensor& grad_output_values,
                   const sample::Tensor& input_values, const sample::Tensor& weight_values) {
  const sample::InfiniTensor grad_output(grad_output_values), input(input_values), weight(weight_values);
  const sample::InfiniTensor grad_input(sample::unwritten(input_values.shape)),
      grad_weight(sample::unwritten(weight_values.shape)), grad_bias(sample::unwritten({kFilters}));
  int pads[] = {1, 1}, strides[] = {1, 1}, dilations[] = {1, 1};
  infiniopConvBackwardDescriptor_t conv = nullptr;
  sample::check(infiniopCreateConvBackwardDescriptor(session.handle(), &conv, grad_output.descriptor(),
                                                     input.descriptor(), weight.descriptor(),
                                                     grad_bias.descriptor(), pads, strides, dilations, 1));
  size_t bytes = 0;
  sample::check(infiniopGetConvBackwardWorkspaceSize(conv, &bytes));
  const sample::InfiniMemory workspace = sample::allocate(bytes);
  sample::check(infiniopConvBackward(conv, workspace.get(), bytes, grad_input.data(), grad_weight.data(),
                                     grad_bias.data(), grad_output.data(), input.data(), weight.data(),
                                     session.stream()));
  sample::check(infinirtStreamSynchronize(session.stream()));
  sample::check(infiniopDestroyConvBackwardDescriptor(conv));
  Gradients result(input_values.shape[0]);
  result.input = grad_input.download();
  result.weight = grad_weight.download();
  result.bias = grad_bias.download();
  return result;
}

void add_over_ranks(sample::Tensor& tensor) {
  MPI_Allreduce(MPI_IN_PLACE, tensor.values.data(), static_cast<int>(tensor.values.size()), MPI_FLOAT,
                MPI_SUM, MPI_COMM_WORLD);
}

bool same_bits(const sample::Tensor& a, const sample::Tensor& b) {
  return a.values.size() == b.values.size() && std::memcmp(a.values.data(), b.values.data(), a.bytes()) == 0;
}

int run(int rank, int ranks) {
  if (kBatch % ranks != 0) {
    if (rank == 0)
      std::fprintf(stderr, "%d ranks, expected a divisor of %d\n", ranks, static_cast<int>(kBatch));
    return 1;
  }
  const sample::InfiniSession session;
  const sample::Tensor grad_output = integers({kBatch, kFilters, kSide, kSide}, 1);
  const sample::Tensor input = integers({kBatch, kChannels, kSide, kSide}, 2);
  const sample::Tensor weight = integers({kFilters, kChannels, 3, 3}, 3);

  const int64_t count = kBatch / ranks, first = rank * count;
  Gradients mine = backward(session, part(grad_output, first, count), part(input, first, count), weight);
  add_over_ranks(mine.weight);
  add_over_ranks(mine.bias);

  // What one rank computes of the whole batch. grad_input is not reduced: each image has its own.
  const Gradients whole = backward(session, grad_output, input, weight);
  const int right = same_bits(mine.weight, whole.weight) && same_bits(mine.bias, whole.bias) &&
                    same_bits(mine.input, part(whole.input, first, count));
  int all_right = 0;
  MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("%d ranks, %d images each\n", ranks, static_cast<int>(count));
    sample::print("grad_bias", mine.bias);
    std::printf("gradients of the parts, added, and those of the whole batch: %s\n",
                all_right != 0 ? "the same bits" : "DIFFERENT");
  }
  return all_right != 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int status = run(rank, ranks);
  MPI_Finalize();
  return status;
}
