// SPDX-License-Identifier: Apache-2.0
// Every row of the table of aclnnConvolutionBackward, provoked: status, argument, value and rule.
#include "rule.h"

namespace retrograd::acl_test {
namespace {

constexpr aclnnStatus kNull = ACLNN_ERR_PARAM_NULLPTR, kInvalid = ACLNN_ERR_PARAM_INVALID;
using Conv = ConvCall;

class ConvRules : public AclTest, public ::testing::WithParamInterface<Rule<Conv>> {};

TEST_P(ConvRules, AreKeptAndExplained) { expect_rule(GetParam()); }

const Rule<Conv> kNullRules[] = {
    {"GradOutputIsNull", [](Conv& c) { c.grad_output.null = true; }, kNull, {"gradOutput is null"}},
    {"InputIsNull", [](Conv& c) { c.input.null = true; }, kNull, {"input is null"}},
    {"WeightIsNull", [](Conv& c) { c.weight.null = true; }, kNull, {"weight is null"}},
    {"StrideIsNull", [](Conv& c) { c.stride.null = true; }, kNull, {"stride is null"}},
    {"PaddingIsNull", [](Conv& c) { c.padding.null = true; }, kNull, {"padding is null"}},
    {"DilationIsNull", [](Conv& c) { c.dilation.null = true; }, kNull, {"dilation is null"}},
    {"OutputPaddingIsNull", [](Conv& c) { c.output_padding.null = true; }, kNull, {"outputPadding is null"}},
    {"OutputMaskIsNull", [](Conv& c) { c.mask.null = true; }, kNull, {"outputMask is null"}},
    {"WorkspaceSizeIsNull", [](Conv& c) { c.null_workspace_size = true; }, kNull, {"workspaceSize is null"}},
    {"ExecutorIsNull", [](Conv& c) { c.null_executor = true; }, kNull, {"executor is null"}},
    {"GradInputIsNullThoughAskedFor",
     [](Conv& c) { c.grad_input.null = true; },
     kNull,
     {"gradInput is null, expected an address as outputMask[0] is true"}},
    {"GradWeightIsNullThoughAskedFor",
     [](Conv& c) { c.grad_weight.null = true; },
     kNull,
     {"gradWeight is null, expected an address as outputMask[1] is true"}},
    {"GradBiasIsNullThoughAskedFor",
     [](Conv& c) { c.grad_bias.null = true; },
     kNull,
     {"gradBias is null, expected an address as outputMask[2] is true"}},
    {"BiasSizesIsNullThoughBiasAskedFor",
     [](Conv& c) { c.bias_sizes.null = true; },
     kNull,
     {"biasSizes is null, expected an address as outputMask[2] is true"}},
};
INSTANTIATE_TEST_SUITE_P(Null, ConvRules, ::testing::ValuesIn(kNullRules), name_of<Conv>);

const Rule<Conv> kMaskRules[] = {
    {"MaskOfLengthTwo",
     [](Conv& c) {
       c.mask.values = {1, 1};
     },
     kInvalid,
     {"outputMask has length 2", "expected 3"}},
    {"MaskOfLengthFour",
     [](Conv& c) {
       c.mask.values = {1, 1, 1, 1};
     },
     kInvalid,
     {"length 4", "expected 3"}},
    {"MaskOfLengthZero", [](Conv& c) { c.mask.values = {}; }, kInvalid, {"length 0", "expected 3"}},
};
INSTANTIATE_TEST_SUITE_P(Mask, ConvRules, ::testing::ValuesIn(kMaskRules), name_of<Conv>);

const Rule<Conv> kDtypeRules[] = {
    {"GradOutputOfInt32",
     [](Conv& c) { c.grad_output.dtype = ACL_INT32; },
     kInvalid,
     {"gradOutput.dtype is ACL_INT32 (3)", "ACL_FLOAT (0), ACL_FLOAT16 (1), ACL_BF16 (27)"}},
    {"InputOfDouble",
     [](Conv& c) { c.input.dtype = ACL_DOUBLE; },
     kInvalid,
     {"input.dtype is ACL_DOUBLE (11)", "ACL_HIFLOAT8 (34), ACL_FLOAT8_E4M3FN (36)"}},
    {"WeightOfFloat8E5M2",
     [](Conv& c) { c.weight.dtype = ACL_FLOAT8_E5M2; },
     kInvalid,
     {"weight.dtype is ACL_FLOAT8_E5M2 (35)", "expected one of"}},
    {"WeightOfNoType",
     [](Conv& c) { c.weight.dtype = ACL_DT_UNDEFINED; },
     kInvalid,
     {"weight.dtype is ACL_DT_UNDEFINED"}},
    {"InputOfATypeThatIsNone",
     [](Conv& c) { c.input.dtype = static_cast<aclDataType>(4711); },
     kInvalid,
     {"input.dtype is 4711", "expected one of"}},
    {"GradInputOfInt8",
     [](Conv& c) { c.grad_input.dtype = ACL_INT8; },
     kInvalid,
     {"gradInput.dtype is ACL_INT8 (2)"}},
    {"GradWeightOfBool",
     [](Conv& c) { c.grad_weight.dtype = ACL_BOOL; },
     kInvalid,
     {"gradWeight.dtype is ACL_BOOL"}},
    {"GradBiasOfInt64",
     [](Conv& c) { c.grad_bias.dtype = ACL_INT64; },
     kInvalid,
     {"gradBias.dtype is ACL_INT64"}},
    {"HiFloat8WithFloat",
     [](Conv& c) { c.weight.dtype = ACL_HIFLOAT8; },
     kInvalid,
     {"dtypes differ", "gradOutput f32", "weight hif8", "8-bit types do not mix"}},
    {"HiFloat8WithE4M3",
     [](Conv& c) {
       c.grad_output.dtype = c.input.dtype = ACL_HIFLOAT8;
       c.weight.dtype = ACL_FLOAT8_E4M3FN;
     },
     kInvalid,
     {"dtypes differ", "weight e4m3"}},
    {"GradInputOf8BitsFromFloat",
     [](Conv& c) { c.grad_input.dtype = ACL_HIFLOAT8; },
     kInvalid,
     {"gradInput.dtype is hif8", "expected f32, f16, bf16"}},
    {"GradWeightOfE4M3FromE4M3",
     [](Conv& c) {
       for (TensorArg* t : c.inputs()) t->dtype = ACL_FLOAT8_E4M3FN;
       c.grad_weight.dtype = ACL_FLOAT8_E4M3FN;
     },
     kInvalid,
     {"gradWeight.dtype is e4m3"}},
    {"GradBiasOf8Bits",
     [](Conv& c) {
       for (TensorArg* t : c.inputs()) t->dtype = ACL_HIFLOAT8;
       c.grad_bias.dtype = ACL_HIFLOAT8;
     },
     kInvalid,
     {"gradBias.dtype is hif8"}},
};
INSTANTIATE_TEST_SUITE_P(Dtype, ConvRules, ::testing::ValuesIn(kDtypeRules), name_of<Conv>);

const Rule<Conv> kFormatRules[] = {
    {"NchwAtRank3",
     [](Conv& c) { make_1d(c), c.input.format = ACL_FORMAT_NCHW; },
     kInvalid,
     {"input.format is ACL_FORMAT_NCHW (0)", "expected ACL_FORMAT_NCL (47), ACL_FORMAT_ND (2) at rank 3"}},
    {"NdAtRank4",
     [](Conv& c) { c.grad_output.format = ACL_FORMAT_ND; },
     kInvalid,
     {"gradOutput.format is ACL_FORMAT_ND (2)", "expected ACL_FORMAT_NCHW (0) at rank 4"}},
    {"NhwcAtRank4",
     [](Conv& c) { c.weight.format = ACL_FORMAT_NHWC; },
     kInvalid,
     {"weight.format is ACL_FORMAT_NHWC (1)", "rank 4"}},
    {"NdhwcAtRank5",
     [](Conv& c) { make_3d(c), c.weight.format = ACL_FORMAT_NDHWC; },
     kInvalid,
     {"weight.format is ACL_FORMAT_NDHWC (27)", "expected ACL_FORMAT_NCDHW (30) at rank 5"}},
    {"GradInputOfFractalFormat",
     [](Conv& c) { c.grad_input.format = ACL_FORMAT_FRACTAL_Z; },
     kInvalid,
     {"gradInput.format is ACL_FORMAT_FRACTAL_Z (4)"}},
    {"GradWeightOfNoFormat",
     [](Conv& c) { c.grad_weight.format = ACL_FORMAT_UNDEFINED; },
     kInvalid,
     {"gradWeight.format is ACL_FORMAT_UNDEFINED (-1)"}},
    {"GradBiasOfNcl",
     [](Conv& c) { c.grad_bias.format = ACL_FORMAT_NCL; },
     kInvalid,
     {"gradBias.format is ACL_FORMAT_NCL (47)", "expected ACL_FORMAT_ND (2) at rank 1"}},
    {"AFormatThatIsNone",
     [](Conv& c) { c.input.format = static_cast<aclFormat>(999); },
     kInvalid,
     {"input.format is 999"}},
};
INSTANTIATE_TEST_SUITE_P(Format, ConvRules, ::testing::ValuesIn(kFormatRules), name_of<Conv>);

const Rule<Conv> kAttributeRules[] = {
    {"StrideZero",
     [](Conv& c) {
       c.stride = {1, 0};
     },
     kInvalid,
     {"stride[1] is 0", "at least 1"}},
    {"StrideNegative",
     [](Conv& c) {
       c.stride = {-2, 1};
     },
     kInvalid,
     {"stride[0] is -2", "at least 1"}},
    {"DilationZero",
     [](Conv& c) {
       c.dilation = {0, 1};
     },
     kInvalid,
     {"dilation[0] is 0", "at least 1"}},
    {"PaddingNegative",
     [](Conv& c) {
       c.padding = {0, -1};
     },
     kInvalid,
     {"padding[1] is -1", "at least 0"}},
    {"StrideTooShort", [](Conv& c) { c.stride = {1}; }, kInvalid, {"stride has 1 entries", "expected 2"}},
    {"StrideTooLong",
     [](Conv& c) {
       c.stride = {1, 1, 1};
     },
     kInvalid,
     {"stride has 3 entries", "expected 2"}},
    {"StrideOfTheLongestKind",
     [](Conv& c) { c.stride = Sizes(65536, 7); },
     kInvalid,
     {"stride has 65536 entries, expected 2 for a 2-D convolution"}},
    {"StrideEmpty", [](Conv& c) { c.stride = Sizes{}; }, kInvalid, {"stride has 0 entries"}},
    {"DilationTooLong",
     [](Conv& c) {
       c.dilation = {1, 1, 1, 1};
     },
     kInvalid,
     {"dilation has 4 entries"}},
    {"PaddingOfThree",
     [](Conv& c) {
       c.padding = {0, 0, 0};
     },
     kInvalid,
     {"padding has 3 entries", "expected 2 or 4"}},
    {"PaddingOfFourIn3d",
     [](Conv& c) {
       make_3d(c), c.padding = {0, 0, 0, 0};
     },
     kInvalid,
     {"padding has 4 entries", "expected 3"}},
    {"PaddingOfTwoIn1d",
     [](Conv& c) {
       make_1d(c), c.padding = {0, 0};
     },
     kInvalid,
     {"padding has 2 entries"}},
    {"OutputPaddingWhenPlain",
     [](Conv& c) {
       c.output_padding = {0, 1};
     },
     kInvalid,
     {"outputPadding[1] is 1", "expected 0", "not transposed"}},
    {"OutputPaddingOfThree",
     [](Conv& c) {
       c.output_padding = {0, 0, 0};
     },
     kInvalid,
     {"outputPadding has 3 entries"}},
    {"CubeMathTypeFour",
     [](Conv& c) { c.cube_math_type = 4; },
     kInvalid,
     {"cubeMathType is 4", "expected 0"}},
    {"CubeMathTypeNegative",
     [](Conv& c) { c.cube_math_type = -1; },
     kInvalid,
     {"cubeMathType is -1", "expected 0"}},
    {"CubeMathTypeTwoForBf16",
     [](Conv& c) {
       for (TensorArg* t : c.inputs()) t->dtype = ACL_BF16;
       c.cube_math_type = 2;
     },
     kInvalid,
     {"cubeMathType is 2", "bf16"}},
    {"GroupsZero", [](Conv& c) { c.groups = 0; }, kInvalid, {"groups is 0", "expected 1 to 65535"}},
    {"GroupsNegative", [](Conv& c) { c.groups = -3; }, kInvalid, {"groups is -3", "expected 1 to 65535"}},
    {"GroupsBeyondTheLimit",
     [](Conv& c) { c.groups = 65536; },
     kInvalid,
     {"groups is 65536", "expected 1 to 65535"}},
    {"GroupsThatDoNotFitTheInput",
     [](Conv& c) { c.groups = 2; },
     kInvalid,
     {"groups is 2", "weight.shape[1] (3)", "input.shape[1], which is 3", "groups = 1 would fit"}},
    {"OutputChannelsNotDivisible",
     [](Conv& c) {
       c.groups = 3;
       c.weight.shape = c.grad_weight.shape = {4, 1, 3, 3};
     },
     kInvalid,
     {"weight.shape[0] is 4", "a multiple of groups = 3"}},
};
INSTANTIATE_TEST_SUITE_P(Attribute, ConvRules, ::testing::ValuesIn(kAttributeRules), name_of<Conv>);

// Transposed: input 2x3x4x4, weight 3x5x3x3, stride 2, so that gradOutput is 2x5x9x9 (10 with output
// padding).
const Rule<Conv> kTransposedRules[] = {
    {"OutputPaddingAsLargeAsTheStride",
     [](Conv& c) {
       make_transposed(c), c.output_padding = {0, 2};
     },
     kInvalid,
     {"outputPadding[1] is 2", "expected 0 to 1"}},
    {"OutputPaddingNegative",
     [](Conv& c) {
       make_transposed(c), c.output_padding = {-1, 0};
     },
     kInvalid,
     {"outputPadding[0] is -1"}},
    {"WeightNIsNotInputC",
     [](Conv& c) { make_transposed(c), c.weight.shape[0] = c.grad_weight.shape[0] = 4; },
     kInvalid,
     {"weight.shape[0] is 4", "expected 3 = input.shape[1]"}},
    {"WeightCTimesGroupsIsNotGradOutputC",
     [](Conv& c) { make_transposed(c), c.grad_output.shape[1] = 4; },
     kInvalid,
     {"weight.shape[1] (5)", "gradOutput.shape[1], which is 4"}},
    {"SpatialSize",
     [](Conv& c) { make_transposed(c), c.grad_output.shape[2] = 11; },
     kInvalid,
     {"gradOutput.shape[2] is 11", "expected 9 = (4 - 1)*2"}},
    {"OutputPaddingIsTheRemainder",
     [](Conv& c) {
       make_transposed(c), c.output_padding = {1, 0};
     },
     kInvalid,
     {"gradOutput.shape[2] is 9", "expected 10"}},
    {"NoInputChannels",
     [](Conv& c) {
       make_transposed(c);
       c.input.shape[1] = c.grad_input.shape[1] = c.weight.shape[0] = c.grad_weight.shape[0] = 0;
     },
     kInvalid,
     {"weight.shape[0] is 0", "at least 1"}},
};
INSTANTIATE_TEST_SUITE_P(Transposed, ConvRules, ::testing::ValuesIn(kTransposedRules), name_of<Conv>);

const Rule<Conv> kShapeRules[] = {
    {"Width",
     [](Conv& c) { c.grad_output.shape[3] = 7; },
     kInvalid,
     {"gradOutput.shape[3] is 7, expected 6 = floor((8 + 0 + 0 - 1*(3-1) - 1)/1) + 1",
      "(input W 8, padding 0+0, dilation 1, kernel 3, stride 1)", "\nreproduce: retrograd explain \"conv "}},
    {"HeightWithAsymmetricPadding",
     [](Conv& c) {
       c.padding = {1, 2, 0, 0};
     },
     kInvalid,
     {"gradOutput.shape[2] is 6, expected 9", "padding 1+2"}},
    {"LengthIn1d",
     [](Conv& c) { make_1d(c), c.grad_output.shape[2] = 5; },
     kInvalid,
     {"gradOutput.shape[2] is 5, expected 6", "input L 8"}},
    {"DepthIn3d",
     [](Conv& c) { make_3d(c), c.grad_output.shape[2] = 3; },
     kInvalid,
     {"gradOutput.shape[2] is 3, expected 2", "input D 3"}},
    {"Batch",
     [](Conv& c) { c.grad_output.shape[0] = 3; },
     kInvalid,
     {"gradOutput.shape[0] is 3", "expected 2"}},
    {"OutputChannels",
     [](Conv& c) { c.grad_output.shape[1] = 5; },
     kInvalid,
     {"gradOutput.shape[1] is 5", "expected 4"}},
    {"KernelLargerThanPaddedInput",
     [](Conv& c) { c.weight.shape[2] = c.grad_weight.shape[2] = 9; },
     kInvalid,
     {"gradOutput.shape[2]", "kernel 9", "input H 8"}},
    {"EmptyGradOutput",
     [](Conv& c) { c.grad_output.shape[3] = 0; },
     kInvalid,
     {"gradOutput.shape[3] is 0", "expected 6"}},
    {"GradInputShape",
     [](Conv& c) { c.grad_input.shape[1] = 4; },
     kInvalid,
     {"gradInput.shape[1] is 4", "expected 3"}},
    {"GradWeightShape",
     [](Conv& c) { c.grad_weight.shape[3] = 2; },
     kInvalid,
     {"gradWeight.shape[3] is 2", "expected 3"}},
    {"GradBiasShape",
     [](Conv& c) { c.grad_bias.shape = {5}; },
     kInvalid,
     {"gradBias.shape[0] is 5", "expected 4"}},
    {"GradBiasRank",
     [](Conv& c) {
       c.grad_bias.shape = {4, 1};
     },
     kInvalid,
     {"gradBias.shape has rank 2", "expected 1"}},
    {"WeightRank",
     [](Conv& c) {
       c.weight.shape = {4, 3, 3};
     },
     kInvalid,
     {"weight.shape has rank 3", "expected 4"}},
    {"GradOutputRank",
     [](Conv& c) {
       c.grad_output.shape = {2, 4, 6};
     },
     kInvalid,
     {"gradOutput.shape has rank 3"}},
    {"NegativeSize",
     [](Conv& c) { c.input.shape[2] = -8; },
     kInvalid,
     {"input.shape[2] is -8", "at least 0"}},
    {"ViewBeyondItsStorage",
     [](Conv& c) { c.input.storage = {383}; },
     kInvalid,
     {"input leaves its storage", "elements 0 to 383", "0 to 382"}},
    {"OffsetBeyondTheStorage",
     [](Conv& c) {
       c.weight.storage = {108};
       c.weight.offset = 1;
     },
     kInvalid,
     {"weight leaves its storage", "offset 1"}},
    {"OffsetBeforeTheStorage",
     [](Conv& c) {
       c.weight.storage = {108};
       c.weight.offset = -1;
     },
     kInvalid,
     {"weight leaves its storage", "offset -1"}},
    {"OutputBeyondItsStorage",
     [](Conv& c) { c.grad_bias.storage = {3}; },
     kInvalid,
     {"gradBias leaves its storage"}},
    {"NegativeStrideBeforeTheStorage",
     [](Conv& c) {
       c.input.strides = {192, 64, 8, -1};
       c.input.storage = {384};
     },
     kInvalid,
     {"input leaves its storage", "elements -7"}},
    {"OverlappingGradInput",
     [](Conv& c) {
       c.grad_input.strides = {192, 64, 8, 0};
     },
     kInvalid,
     {"gradInput.strides", "two elements share an address"}},
    {"OverlappingGradWeight",
     [](Conv& c) {
       c.grad_weight.strides = {27, 9, 2, 1};
     },
     kInvalid,
     {"gradWeight.strides", "27x9x2x1"}},
    {"OverlappingGradBias", [](Conv& c) { c.grad_bias.strides = {0}; }, kInvalid, {"gradBias.strides"}},
    {"ProductsThatOverflow",
     [](Conv& c) {
       c.input.shape = c.grad_input.shape = {int64_t{1} << 32, 3, int64_t{1} << 32, 8};
     },
     kInvalid,
     {"input.shape", "64 bits"}},
    {"StridesThatOverflow",
     [](Conv& c) {
       c.input.strides = {int64_t{1} << 62, int64_t{1} << 62, 8, 1};
     },
     kInvalid,
     {"input.shape", "strides", "64 bits"}},
};
INSTANTIATE_TEST_SUITE_P(Shape, ConvRules, ::testing::ValuesIn(kShapeRules), name_of<Conv>);

}  // namespace
}  // namespace retrograd::acl_test
