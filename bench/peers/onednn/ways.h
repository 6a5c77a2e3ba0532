// SPDX-License-Identifier: Apache-2.0
// Ways: how one gradient can be computed. oneDNN says what it cannot do by throwing; that is left out.
#pragma once

#include <functional>

#include "variants.h"

namespace retrograd::peers {

// Appends one gradient's work to a sequence.
using Way = std::function<void(Sequence&)>;
struct NamedWay {
  std::string name;
  Way append;
  bool reference = false;  // plain loops of oneDNN's, alone or behind its reorders
};

// A way with the primitive it is of.
struct Made {
  std::string implementation;
  Way append;

  template <class PrimitiveDesc>
  Made(const PrimitiveDesc& desc, Way way) : implementation(desc.impl_info_str()), append(std::move(way)) {}
  bool reference() const { return implementation.find("ref") != std::string::npos; }
};

class Attempts {
 public:
  void attempt(const char* name, const std::function<Made()>& make) {
    try {
      Made made = make();
      ways_.push_back({name, std::move(made.append), made.reference()});
    } catch (const dnnl::error& error) {
      reason_ = error.what();
    }
  }
  const std::vector<NamedWay>& made(const std::string& gradient) const {
    if (ways_.empty()) throw Declined{gradient + ": " + reason_};
    return ways_;
  }
  // The same, with reference loops only where there is nothing else.
  std::vector<NamedWay> without_reference(const std::string& gradient) const {
    std::vector<NamedWay> some;
    for (const NamedWay& way : made(gradient))
      if (!way.reference) some.push_back(way);
    return some.empty() ? ways_ : some;
  }

 private:
  std::vector<NamedWay> ways_;
  std::string reason_;  // the last one, for the case that nothing is left
};

class Variants {
 public:
  Variants(const Tensors& tensors, const dnnl::engine& engine) : tensors_(tensors), engine_(engine) {}
  void add(const std::string& name, const Way& append) {
    try {
      Sequence sequence(tensors_, engine_);
      append(sequence);
      sequence.write_back();
      variants_.push_back({name, std::move(sequence)});
    } catch (const dnnl::error& error) {
      reason_ = error.what();
    }
  }
  std::vector<Variant> made() {
    if (variants_.empty()) throw Declined{reason_};
    return std::move(variants_);
  }

 private:
  const Tensors& tensors_;
  const dnnl::engine& engine_;
  std::vector<Variant> variants_;
  std::string reason_;
};

}  // namespace retrograd::peers
