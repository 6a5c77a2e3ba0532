// SPDX-License-Identifier: Apache-2.0
// Parses the one-line text form of a request; a failure points at the offending token and names the legal
// values.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/checked.h"
#include "problem/problem_text.h"
#include "problem/window.h"

namespace retrograd::problem {
namespace {

struct Token {
  std::string_view key;
  std::string_view value;
  size_t column = 0;  // of the key
  bool used = false;
};

// Letters to put in, take out or replace to make one word the other; neighbours that changed places count
// once.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last, now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) now[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, now);
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
  }
  return now.back();
}

class Fields {
 public:
  explicit Fields(std::string_view text) : text_(text) {}

  // Splits the text; the first word, the kind, is returned.
  Result<std::string_view> read() {
    size_t at = 0;
    std::string_view kind;
    while ((at = text_.find_first_not_of(" \t", at)) != std::string_view::npos) {
      const size_t end = std::min(text_.find_first_of(" \t", at), text_.size());
      const std::string_view word = text_.substr(at, end - at);
      const size_t equals = word.find('=');
      if (kind.empty() && tokens_.empty() && equals == std::string_view::npos) {
        kind = word;
      } else if (equals == std::string_view::npos || equals == 0) {
        return fail(at, fmt::format("'{}' is not of the form key=value", word));
      } else {
        for (const Token& other : tokens_)
          if (other.key == word.substr(0, equals))
            return fail(at, fmt::format("'{}' is given twice", other.key));
        tokens_.push_back({word.substr(0, equals), word.substr(equals + 1), at});
      }
      at = end;
    }
    return kind;
  }

  Token* find(std::string_view key) {
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.push_back(key);
    for (Token& token : tokens_)
      if (token.key == key) {
        token.used = true;
        return &token;
      }
    return nullptr;
  }

  // Every token was asked for by name.
  Status finish() const {
    for (const Token& token : tokens_)
      if (!token.used)
        return fail(token.column, fmt::format("'{}' is not known here, expected one of {}{}", token.key,
                                              fmt::join(asked_, ", "), nearest_to(token.key)));
    return Status::ok();
  }
  Status missing(std::string_view key) const {
    return fail(text_.size(), fmt::format("'{}' is missing", key));
  }

  Status fail(size_t column, const std::string& sentence) const {
    return Status(Code::kInvalidArgument, "{}\n{}\n{:>{}}", sentence, text_, '^', column + 1);
  }
  Status fail(const Token& token, const std::string& sentence) const {
    return fail(token.column + token.key.size() + 1, fmt::format("{}: {}", token.key, sentence));
  }

 private:
  // "; the nearest is 'weight'", where one is near.
  std::string nearest_to(std::string_view key) const {
    constexpr size_t kNear = 2, kLongest = 32;
    if (key.size() > kLongest || asked_.empty()) return {};
    const auto nearest = *std::min_element(
        asked_.begin(), asked_.end(), [&](auto a, auto b) { return distance(key, a) < distance(key, b); });
    return distance(key, nearest) > kNear ? std::string() : fmt::format("; the nearest is '{}'", nearest);
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  std::vector<std::string_view> asked_;
};

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::vector<int64_t>> parse_list(std::string_view text) {
  std::vector<int64_t> values;
  while (true) {
    const size_t end = std::min(text.find('x'), text.size());
    const auto value = parse_number(text.substr(0, end));
    if (!value) return std::nullopt;
    values.push_back(*value);
    if (end == text.size()) return values;
    text.remove_prefix(end + 1);
  }
}

// The first number of a list that is one, and beyond 64 bits; empty: there is none.
std::string_view too_large_number(std::string_view text) {
  while (true) {
    const size_t end = std::min(text.find('x'), text.size());
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + end, value);
    if (error == std::errc::result_out_of_range && stop == text.data() + end) return text.substr(0, end);
    if (end == text.size()) return {};
    text.remove_prefix(end + 1);
  }
}

// The sentence about a text of numbers that could not be read.
std::string unread(std::string_view text, std::string otherwise) {
  const std::string_view number = too_large_number(text);
  return number.empty() ? otherwise : fmt::format("'{}' does not fit in 64 bits", number);
}

bool parse_format(std::string_view text, Format& format) {
  for (const Format each : {Format::kUnsaid, Format::kNcl, Format::kNd, Format::kNchw, Format::kNcdhw})
    if (text == name_of(each)) {
      format = each;
      return true;
    }
  return false;
}

// Reads typed values out of the fields, keeping the first failure.
class Reader {
 public:
  explicit Reader(Fields& fields) : fields_(fields) {
    if (const Token* token = fields_.find("dtype")) {
      if (const auto dtype = dtype_from_name(token->value)) {
        dtype_ = *dtype;
      } else {
        note(fields_.fail(*token, unknown_dtype(token->value)));
      }
    }
  }

  // What is missing comes last: it may be there under a name that is not known.
  Status status() {
    RG_CHECK(status_);
    RG_CHECK(fields_.finish());
    return missing_;
  }
  bool ok() const { return status_.is_ok() && missing_.is_ok(); }

  TensorView tensor(std::string_view key, std::optional<TensorView> otherwise) {
    Token* token = fields_.find(key);
    if (token == nullptr) {
      if (!otherwise && missing_.is_ok()) missing_ = fields_.missing(key);
      return otherwise.value_or(TensorView{});
    }
    std::string_view text = token->value;
    std::optional<std::vector<int64_t>> strides;
    if (const size_t at = text.find('@'); at != std::string_view::npos) {
      strides = parse_list(text.substr(at + 1));
      if (!strides)
        note(fields_.fail(
            *token, unread(text.substr(at + 1), fmt::format("'{}' are no strides", text.substr(at + 1)))));
      text = text.substr(0, at);
    }
    DType dtype = dtype_;
    if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
      const auto named = dtype_from_name(text.substr(colon + 1));
      if (!named) note(fields_.fail(*token, unknown_dtype(text.substr(colon + 1))));
      dtype = named.value_or(dtype_);
      text = text.substr(0, colon);
    }
    auto sizes = text == "scalar" ? std::vector<int64_t>{} : parse_list(text);
    if (!sizes || sizes->size() > Dims::kMaxRank || (strides && strides->size() != sizes->size())) {
      note(fields_.fail(
          *token, unread(text, fmt::format("'{}' is not SHAPE[:dtype][@strides] with at most {} sizes, as in "
                                           "2x3x8x8:f16@192x1x24x3",
                                           token->value, Dims::kMaxRank))));
      return {};
    }
    TensorView view = dense_view(dtype, Dims(*sizes));
    if (strides) view.strides = Dims(*strides);
    return view;
  }

  std::optional<TensorView> optional_tensor(std::string_view key) {
    if (fields_.find(key) == nullptr) return std::nullopt;
    return tensor(key, std::nullopt);
  }

  std::vector<int64_t> list(std::string_view key, std::vector<int64_t> otherwise) {
    const Token* token = fields_.find(key);
    if (token == nullptr) return otherwise;
    if (token->value == "none") return {};
    auto values = parse_list(token->value);
    if (!values)
      note(fields_.fail(
          *token, unread(token->value, fmt::format("'{}' is no list of numbers, as in 1x2", token->value))));
    return values.value_or(otherwise);
  }

  std::optional<std::vector<int64_t>> optional_list(std::string_view key) {
    if (fields_.find(key) == nullptr) return std::nullopt;
    return list(key, {});
  }

  // Five names with commas between them: grad_output, input, weight, grad_input, grad_weight.
  ConvFormats formats(std::string_view key) {
    ConvFormats f;
    const Token* token = fields_.find(key);
    if (token == nullptr) return f;
    std::string_view rest = token->value;
    bool known = std::count(rest.begin(), rest.end(), ',') == 4;
    for (Format* each : {&f.grad_output, &f.input, &f.weight, &f.grad_input, &f.grad_weight}) {
      const size_t end = std::min(rest.find(','), rest.size());
      known = known && parse_format(rest.substr(0, end), *each);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (!known)
      note(fields_.fail(*token, fmt::format("'{}' is not five of -, ncl, nd, nchw, ncdhw with commas between",
                                            token->value)));
    return f;
  }

  int64_t number(std::string_view key, int64_t otherwise) {
    const Token* token = fields_.find(key);
    if (token == nullptr) return otherwise;
    const auto value = parse_number(token->value);
    if (!value)
      note(fields_.fail(*token, unread(token->value, fmt::format("'{}' is no number", token->value))));
    return value.value_or(otherwise);
  }

  int digit(std::string_view key, int otherwise, int largest) {
    const int64_t value = number(key, otherwise);
    if (value >= 0 && value <= largest) return static_cast<int>(value);
    note(fields_.fail(*fields_.find(key), fmt::format("{} is not one of 0 to {}", value, largest)));
    return otherwise;
  }

  bool flag(std::string_view key, bool otherwise) {
    const int64_t value = number(key, otherwise);
    if (value != 0 && value != 1)
      note(fields_.fail(*fields_.find(key), fmt::format("{} is neither 0 nor 1", value)));
    return value == 1;
  }

  // Whether the problem is a forward one, whose output has another name than the gradient it stands for.
  bool forward(const char*& y_name) {
    const bool is_forward = flag("forward", false);
    if (is_forward) y_name = "output";
    return is_forward;
  }

  std::string_view word(std::string_view key, std::string_view otherwise, std::string_view legal) {
    const Token* token = fields_.find(key);
    if (token == nullptr) return otherwise;
    for (std::string_view rest = legal; !rest.empty();) {
      const size_t end = std::min(rest.find(' '), rest.size());
      if (token->value == rest.substr(0, end)) return token->value;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    note(fields_.fail(*token, fmt::format("'{}' is not one of {}", token->value, legal)));
    return otherwise;
  }

 private:
  static std::string unknown_dtype(std::string_view name) {
    return fmt::format("'{}' is not one of f32, f16, bf16, hif8, e4m3", name);
  }
  void note(Status status) {
    if (status_.is_ok()) status_ = std::move(status);
  }

  Fields& fields_;
  DType dtype_ = DType::kF32;
  Status status_, missing_;
};

// A size that follows from the others; 0 where none does, for make_problem to complain about.
int64_t possible(std::optional<int64_t> size) { return std::max<int64_t>(size.value_or(0), 0); }

int64_t implied_size(const ConvRequest& r, size_t axis) {
  const int dim = static_cast<int>(axis) + 2;
  if (r.weight.shape.rank() <= dim || r.stride.size() <= axis || r.dilation.size() <= axis ||
      r.stride[axis] < 1)
    return 0;
  const bool pairs = r.padding.size() == 2 * spatial_axes(r.input);
  if (r.padding.size() <= (pairs ? 2 * axis + 1 : axis)) return 0;
  const WindowSizes sizes{r.input.shape[dim],
                          r.weight.shape[dim],
                          r.stride[axis],
                          r.dilation[axis],
                          r.padding[pairs ? 2 * axis : axis],
                          r.padding[pairs ? 2 * axis + 1 : axis]};
  if (!r.transposed) return possible(output_size(sizes));
  const bool extra_pairs = r.output_padding.size() == 2 * spatial_axes(r.input);
  if (r.output_padding.size() <= (extra_pairs ? 2 * axis + 1 : axis)) return 0;
  return possible(transposed_output_size(sizes, sizes.x, extra_pairs ? r.output_padding[2 * axis] : 0,
                                         r.output_padding[extra_pairs ? 2 * axis + 1 : axis]));
}

TensorView implied_grad_output(const ConvRequest& r) {
  Dims shape;
  if (r.input.shape.rank() >= 3 && r.weight.shape.rank() >= 2) {
    shape = {r.input.shape[0],
             r.transposed ? checked_mul(r.weight.shape[1], r.groups).value_or(0) : r.weight.shape[0]};
    for (size_t axis = 0; axis < spatial_axes(r.input); ++axis) shape.push_back(implied_size(r, axis));
  }
  return dense_view(r.input.dtype, shape);
}

void read_gradients(Reader& read, ConvRequest& r) {
  const std::string_view mask = read.word("mask", "iwb", "iwb i w b iw ib wb none");
  const auto wanted = [&](char letter) {
    return mask != "none" && mask.find(letter) != std::string_view::npos;
  };
  const DType dtype = r.input.dtype;
  const Dims bias = r.grad_output.shape.rank() > 1 ? Dims{r.grad_output.shape[1]} : Dims{};
  const TensorView grad_input = read.tensor("grad_input", dense_view(dtype, r.input.shape));
  const TensorView grad_weight = read.tensor("grad_weight", dense_view(dtype, r.weight.shape));
  const TensorView grad_bias = read.tensor("grad_bias", dense_view(dtype, bias));
  if (wanted('i')) r.grad_input = grad_input;
  if (wanted('w')) r.grad_weight = grad_weight;
  if (wanted('b')) r.grad_bias = grad_bias;
}

Result<Request> parse_conv(Fields& fields) {
  Reader read(fields);
  ConvRequest r;
  r.input = read.tensor("input", std::nullopt);
  r.weight = read.tensor("weight", std::nullopt);
  const size_t axes = spatial_axes(r.input);
  r.stride = read.list("stride", std::vector<int64_t>(axes, 1));
  r.padding = read.list("padding", std::vector<int64_t>(axes, 0));
  r.dilation = read.list("dilation", std::vector<int64_t>(axes, 1));
  r.output_padding = read.list("output_padding", std::vector<int64_t>(axes, 0));
  r.transposed = read.flag("transposed", false);
  r.groups = read.number("groups", 1);
  r.math.mode = read.number("math", 0);
  r.math.winograd = read.flag("winograd", false);
  r.forward = read.forward(r.names.grad_output);
  r.grad_output = read.tensor(r.names.grad_output, read.ok() ? implied_grad_output(r) : TensorView{});
  if (r.forward) {
    r.bias = read.optional_tensor("bias");
  } else {
    read_gradients(read, r);
  }
  const std::string_view rules = read.word("rules", "", "aclnn infiniop");
  r.rules.one_dtype = rules == "infiniop";
  r.rules.asymmetric_any_rank = rules != "aclnn";
  if (rules == "aclnn") r.rules.max_groups = kAclnnMaxGroups;
  r.math.product = product_from_name(read.word("product", "", "a2 a3 910_95 training"));
  r.for_products.bias_sizes = read.optional_list("bias_sizes");
  r.for_products.formats = read.formats("formats");
  RG_CHECK(read.status());
  return Request(std::move(r));
}

Result<Request> parse_conv_tbc(Fields& fields) {
  Reader read(fields);
  ConvTbcRequest r;
  r.input = read.tensor("input", std::nullopt);
  r.weight = read.tensor("weight", std::nullopt);
  r.pad = read.number("pad", 0);
  r.math.mode = read.number("math", 0);
  r.math.product = product_from_name(read.word("product", "", "a2 a3 910_95 training"));
  Dims bias, grad_output;
  if (r.input.shape.rank() == 3 && r.weight.shape.rank() == 3) {
    bias = {r.weight.shape[2]};
    grad_output = {possible(output_size({r.input.shape[0], r.weight.shape[0], 1, 1, r.pad, r.pad})),
                   r.input.shape[1], r.weight.shape[2]};
  }
  const DType dtype = r.input.dtype;
  r.forward = read.forward(r.names.grad_output);
  r.grad_output = read.tensor(r.names.grad_output, dense_view(dtype, grad_output));
  r.bias = read.tensor("bias", dense_view(dtype, bias));
  if (!r.forward) {
    r.grad_input = read.tensor("grad_input", dense_view(dtype, r.input.shape));
    r.grad_weight = read.tensor("grad_weight", dense_view(dtype, r.weight.shape));
    r.grad_bias = read.tensor("grad_bias", dense_view(dtype, r.bias.shape));
  }
  RG_CHECK(read.status());
  return Request(std::move(r));
}

Result<Request> parse_avgpool(Fields& fields) {
  Reader read(fields);
  AvgPoolRequest r;
  r.input = read.tensor("input", std::nullopt);
  r.kernel = read.list("kernel", {});
  r.stride = read.list("stride", {});
  r.padding = read.list("padding", {0});
  r.ceil_mode = read.flag("ceil", false);
  r.count_include_pad = read.flag("count_include_pad", true);
  r.divisor_override = read.number("divisor", 0);
  r.spatial_rank = read.digit("spatial", 0, 3);
  r.uncorrected_ceil_sizes = read.word("rules", "", "aclnn infiniop") == "infiniop";
  const int first = r.spatial_rank > 0 && r.input.shape.rank() == r.spatial_rank + 1 ? 1 : 2;
  Dims shape;
  for (int dim = 0; dim < r.input.shape.rank(); ++dim) {
    int64_t size = r.input.shape[dim];
    if (dim >= first) {
      const auto entry = [&](const std::vector<int64_t>& values) {
        const auto i = values.size() == 1 ? 0 : static_cast<size_t>(dim - first);
        return i < values.size() ? values[i] : 0;
      };
      const int64_t kernel = entry(r.kernel);
      const PoolWindow window{size, 0, kernel, r.stride.empty() ? kernel : entry(r.stride), entry(r.padding)};
      size = window.stride < 1 ? 0 : possible(pool_output_size(window, r.ceil_mode, true));
    }
    shape.push_back(size);
  }
  r.forward = read.forward(r.names.grad_output);
  r.grad_output = read.tensor(r.names.grad_output, dense_view(r.input.dtype, shape));
  if (!r.forward) r.grad_input = read.tensor("grad_input", dense_view(r.input.dtype, r.input.shape));
  RG_CHECK(read.status());
  return Request(std::move(r));
}

}  // namespace

Result<Request> parse_request(std::string_view text) {
  Fields fields(text);
  RG_TRY(const std::string_view kind, fields.read());
  if (kind == "conv") return parse_conv(fields);
  if (kind == "conv_tbc") return parse_conv_tbc(fields);
  if (kind == "avgpool") return parse_avgpool(fields);
  return fields.fail(std::min(text.find_first_not_of(" \t"), text.size()),
                     fmt::format("'{}' is not one of conv, conv_tbc, avgpool", kind));
}

}  // namespace retrograd::problem
