// SPDX-License-Identifier: Apache-2.0
// Texts that the library writes into memory of ours.
#pragma once

#include <string>

#include "arrays.h"

namespace retrograd::python {

// call(text, capacity, &length).
template <class Call>
std::string whole_text(const Call& call) {
  std::string text(1024, '\0');
  for (;;) {
    size_t length = 0;
    retrogradStatus_t status;
    {
      const nb::gil_scoped_release others_run;
      status = call(text.data(), text.size(), &length);
    }
    check(status);
    const bool fits = length < text.size();
    text.resize(fits ? length : length + 1);
    if (fits) return text;
  }
}

}  // namespace retrograd::python
