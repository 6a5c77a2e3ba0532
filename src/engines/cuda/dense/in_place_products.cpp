// SPDX-License-Identifier: Apache-2.0
// forward and grad_input as products of operands where they lie: sources of planes or of rows of channels,
// weights of any strides or with columns side by side. One launch, two with parts: for passes so small that
// copies to rows take longer than the product, and for weights larger than all else.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/checked.h"
#include "engines/cuda/candidate.h"
#include "engines/cuda/dense/gather_way.h"
#include "engines/cuda/dense/product_limits.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/dense/gather_in_place.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::Columns;
using kernels::cuda::InPlaceCut;
using kernels::cuda::InPlaceForm;
using kernels::cuda::is_aligned;
using kernels::cuda::ProductMath;

// Microseconds of a step of a tile of 64 columns: by itself, and of a multiprocessor's share of many.
struct StepTime {
  double alone, together;
};
constexpr double kTile = 0.9;  // of a tile's beginning and end, 64 columns
// In 16 bits, in f32, and in f32 rounded to TF32: of rows; of elements, with none of them inside, more for
// those of the source, more where every weight is read with 32 bytes of others, since neighbouring columns
// lie apart.
constexpr StepTime kRows[] = {{0.65, 0.37}, {0.87, 0.75}, {0.65, 0.37}},
                   kEmpty[] = {{1.3, 0.48}, {0.8, 0.29}, {0.7, 0.2}},
                   kFull[] = {{0.9, 0.28}, {0.2, 0.2}, {0.15, 0.12}},
                   kApart[] = {{3.2, 2.0}, {0.2, 1.3}, {0.2, 1.3}};

ProductMath math_of(const ConvPass& p) {
  if (p.w.dtype == DType::kF16) return ProductMath::kF16;
  if (p.w.dtype == DType::kBF16) return ProductMath::kBF16;
  return p.rounding == OperandRounding::kHf32Bits10 ? ProductMath::kTF32 : ProductMath::kF32;
}

// Columns run as the weights of a y channel lie; where that is not how the result lies, too, stores of a
// folded product would be single elements.
Columns folded_columns(const ConvPass& p) {
  if (!can_fold(p) || taps_of(p) == 1) return Columns::kChannels;
  if (is_channels_last(p.result(), result_sizes(p)))
    return is_channels_last(p.w, w_sizes(p)) ? Columns::kFoldedChannelsFast : Columns::kChannels;
  return are_weights_rows(p) && p.axes[2].kernel > 1 ? Columns::kFoldedTapsFast : Columns::kChannels;
}

// The products of a pass and how they are cut.
struct InPlaceWay {
  std::vector<ProductAxes> products;
  kernels::cuda::GatherProduct product{};  // without addresses
  bool cleared = false;                    // the result is set to zero before
  InPlaceForm form = InPlaceForm::kElements;
  InPlaceCut cut{};

  explicit InPlaceWay(const ConvPass& p) {
    product.conv = shape_of(p);
    product.forward = is_forward(p);
    product.math = math_of(p);
    product.columns = folded_columns(p);
    if (product.columns != Columns::kChannels) {
      products = {*folded_axes(p)};
      cleared = product.padded = !folded_covers_x(p);
    } else {
      products = product_axes(p);
      clear_without_taps(p);
      product.padded = std::any_of(products.begin(), products.end(),
                                   [](const ProductAxes& axes) { return leaves_source(axes); });
    }
    form = kernels::cuda::in_place_form(product.conv, product.forward, product.columns);
    cut = kernels::cuda::in_place_cut(product, form, products);
  }

 private:
  // Tiles of zeros do it without a launch where they write neighbouring elements.
  void clear_without_taps(const ConvPass& p) {
    const Sizes5 sizes = result_sizes(p);
    if (p.bias || p.axes[2].stride == 1 || !is_planes(p.result(), sizes) ||
        is_channels_last(p.result(), sizes))
      return;
    cleared = std::erase_if(products, has_no_tap) > 0;
  }
};

class InPlaceStep final : public Step {
 public:
  explicit InPlaceStep(const ConvPass& pass) : pass_(pass), way_(pass) {}
  size_t workspace_bytes() const override {
    return static_cast<size_t>(way_.cut.partial_floats) * sizeof(float);
  }
  std::string describe() const override {
    const size_t count = way_.products.size();
    return fmt::format("tiles 64 x {}, {}, {}{}", way_.cut.n,
                       way_.form == InPlaceForm::kRows ? "rows" : "elements",
                       way_.product.columns != Columns::kChannels
                           ? std::string("taps folded into columns")
                           : fmt::format("{} product{}", count, count == 1 ? "" : "s"),
                       way_.cut.parts > 1 ? fmt::format(", {} parts", way_.cut.parts) : "");
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const auto stream = stream_of(context);
    kernels::cuda::GatherProduct product = way_.product;
    product.conv = bind(pass_, bindings);
    product.partial = reinterpret_cast<float*>(workspace);
    const kernels::cuda::Tensor& source = product.forward ? product.conv.x : product.conv.y;
    const bool aligned = is_aligned(source.data) && is_aligned(product.conv.w.data);
    if (way_.cleared)
      kernels::cuda::clear((product.forward ? product.conv.y : product.conv.x).data,
                           size_in_bytes(result_sizes(pass_), pass_.result().dtype), stream);
    kernels::cuda::gather_in_place(product, aligned ? way_.form : InPlaceForm::kElements, way_.cut,
                                   way_.products, stream);
  }

 private:
  ConvPass pass_;
  InPlaceWay way_;
};

StepTime step_time(const ConvPass& p, const InPlaceWay& way) {
  const auto size = static_cast<int64_t>(size_of(p.w.dtype));
  const size_t type = size == 2 ? 0 : way.product.math == ProductMath::kF32 ? 1 : 2;
  if (way.form == InPlaceForm::kRows) return kRows[type];
  // Of a step's terms and of a tile's columns, how many are there.
  const auto filled = [](int64_t count, int64_t of) {
    return static_cast<double>(count) / static_cast<double>(ceil_div(count, of) * of);
  };
  const bool folded = way.product.columns != Columns::kChannels;
  const double terms =
      filled(is_forward(p) ? p.x_channels_per_group() : p.y_channels_per_group(), 128 / size);
  const double columns = filled(columns_of(p) * (folded ? taps_of(p) : 1), way.cut.n) * way.cut.n / 64;
  const int64_t column =
      kernels::cuda::in_place_weights(way.product.conv, way.product.forward, way.product.columns).column;
  const double apart =
      column == 1 ? 0 : std::min(1.0, static_cast<double>(std::abs(column) * size) / 32) * terms * columns;
  return {kEmpty[type].alone + terms * kFull[type].alone + apart * kApart[type].alone,
          kEmpty[type].together + terms * kFull[type].together + apart * kApart[type].together};
}

Support takes(const ConvPass& p) {
  if (is_grad_weight(p)) return Support::no("forward and grad_input only");
  if (const Support support = takes_products(p); !support.accepted()) return support;
  const PassTensor& source = source_of(p);
  if (!has_one_wide_type(p)) return Support::no("needs tensors of one type, f32, f16 or bf16");
  const ProductMath math = math_of(p);
  if (math == ProductMath::kF32 && p.rounding != OperandRounding::kNone)
    return Support::no("rounds operands to TF32 only");
  // A folded sum has one tap.
  const bool folded = folded_columns(p) != Columns::kChannels;
  const int64_t terms = folded ? p.y_channels_per_group() : terms_of(p);
  if (math == ProductMath::kF32)
    if (const Support support = takes_split_products(terms); !support.accepted()) return support;
  if (!is_few_residues(p) && !folded) return Support::no("more than 64 residues of the strides");
  if (!is_planes(source, source_sizes(p)) && InPlaceWay(p).form != InPlaceForm::kRows)
    return Support::no("needs planes, or rows of whole chunks and weights whose columns lie side by side");
  return Support::yes();
}

template <bool kInTf32>
Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (kInTf32 && (!conv.hf32_allowed || source_of(conv).dtype != DType::kF32))
    return Support::no("f32 operands must not be rounded, or are not there");
  return takes(rounded(conv, kInTf32));
}

Effort effort(const ConvPass& p, const Machine& machine) {
  const InPlaceWay way(p);
  const InPlaceCut& cut = way.cut;
  const StepTime step = step_time(p, way);
  const double all = (static_cast<double>(cut.tile_steps) * step.together +
                      static_cast<double>(cut.tiles * cut.parts) * kTile * cut.n / 64) /
                     processors_of(machine);
  const double longest = step.alone * static_cast<double>(cut.steps) / cut.parts;
  Times times(p, machine);
  const Sizes5 sizes = result_sizes(p);
  const bool apart = (way.products.size() > 1 || way.cleared) && !is_channels_last(p.result(), sizes) &&
                     p.axes[2].stride > 1;
  const double written = bytes_of(p.result(), sizes) * ((apart ? 3 : 0) + (way.cleared ? 1 : 0));
  times.add(
      std::max(all, longest),
      static_cast<double>(ceil_div(static_cast<int64_t>(way.products.size()), kernels::cuda::kMostResidues)),
      bytes_of(p) + written);
  if (way.cleared) times.add(0);
  if (cut.parts > 1) times.add(0, 1, 8.0 * static_cast<double>(cut.partial_floats));
  return times.effort();
}

template <bool kInTf32>
const Candidate& candidate(const char* name) {
  static const ConvCandidate instance(
      {name, "convolutions only", supports<kInTf32>,
       [](const ConvPass& pass, const Machine& machine) { return effort(rounded(pass, kInTf32), machine); },
       [](const ConvPass& pass, const Machine& /*machine*/) -> std::unique_ptr<const Step> {
         return std::make_unique<InPlaceStep>(rounded(pass, kInTf32));
       },
       nullptr, kInTf32});
  return instance;
}

}  // namespace

const Candidate& in_place_products() { return candidate<false>("cuda.in_place_products"); }
const Candidate& in_place_tf32() { return candidate<true>("cuda.in_place_tf32"); }

}  // namespace retrograd::engines::cuda
