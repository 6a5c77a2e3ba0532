// SPDX-License-Identifier: Apache-2.0
// The module retrograd._core: what the Python code of the package calls. _core.pyi describes it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "arrays.h"
#include "numpy_layout.h"
#include "plans.h"
#include "run.h"
#include "texts.h"
#include "workspaces.h"

using namespace retrograd::python;

namespace {

std::string explain(const std::string& problem, const std::string& device) {
  const retrogradDevice_t where = parse_device(device);
  return whole_text([&](char* text, size_t capacity, size_t* length) {
    return retrogradExplain(problem.c_str(), where, text, capacity, length);
  });
}

std::string describe_device(const std::string& device) {
  const retrogradDevice_t where = parse_device(device);
  return whole_text([&](char* text, size_t capacity, size_t* length) {
    return retrogradDescribeDevice(where, text, capacity, length);
  });
}

int device_count(bool cuda) {
  int32_t count = 0;
  check(retrogradGetDeviceCount(cuda ? RETROGRAD_CUDA : RETROGRAD_CPU, &count));
  return count;
}

}  // namespace

NB_MODULE(_core, m) {
  nb::class_<Plan>(m, "Plan")
      .def("__init__",
           [](nb::handle, nb::args) { throw nb::type_error("plans are made by retrograd.plan()"); })
      .def_prop_ro("workspace_bytes", &Plan::workspace_bytes)
      .def_prop_ro("cost", &Plan::cost)
      .def_prop_ro("engines", &Plan::engines)
      .def("tensor", &Plan::tensor, nb::arg("operand"))
      .def("run", &run_plan, nb::arg("arrays"), nb::arg("dtypes"), nb::arg("stream"),
           nb::arg("allocate").none());
  m.def("plan", &plan_from_text, nb::arg("problem"), nb::arg("device"));
  m.def("run", &run, nb::arg("operation"), nb::arg("arrays"), nb::arg("dtypes"), nb::arg("lists"),
        nb::arg("numbers"), nb::arg("stream"), nb::arg("allocate").none());
  m.def("run_plain", &run_plain, nb::arg("operation"), nb::arg("arrays"), nb::arg("lists"),
        nb::arg("numbers"));
  m.def("lie_apart", &lie_apart, nb::arg("results"), nb::arg("operands"));
  m.def("learn_numpy", &learn_numpy, nb::arg("array_type"), nb::arg("f32"), nb::arg("f16"), nb::arg("probe"));
  m.def("problem_text", &problem_text, nb::arg("operation"), nb::arg("arrays"), nb::arg("dtypes"),
        nb::arg("lists"), nb::arg("numbers"));
  m.def("explain", &explain, nb::arg("problem"), nb::arg("device"));
  m.def("describe_device", &describe_device, nb::arg("device"));
  m.def("device_count", &device_count, nb::arg("cuda"));
  m.def("version", &retrogradVersion);
  m.def("cache_info", [] { return nb::make_tuple(cached_plans(), kept_workspace_bytes()); });
  m.def("clear_cache", [] {
    forget_plans();
    forget_workspaces();
  });
}
