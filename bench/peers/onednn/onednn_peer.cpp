// SPDX-License-Identifier: Apache-2.0
// `retrograd-peer-onednn --threads N`: oneDNN behind the line protocol of `retrograd bench --peer`
// (bench/README.md). `retrograd-peer-onednn --check "<problem>"…` compares every variant with our own result
// on small integers, so that no wrong set-up is timed.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "plan/plan.h"
#include "problem/problem_text.h"
#include "threads.h"
#include "variants.h"

namespace retrograd::peers {
namespace {

using Clock = std::chrono::steady_clock;
using problem::Operand;

// A variant this much slower than the best at first sight is not timed again.
constexpr double kHopeless = 1.3;
// Idle threads spin for some milliseconds; whoever is timed next must not share the cores with them.
constexpr std::chrono::milliseconds kUntilThreadsSleep(10);
// Seconds of calls that are not timed: threads that have slept share a core at first.
constexpr double kSettling = 3e-3;

struct Timing {
  double median_ns = 0;
  double least_ns = 0;
  size_t runs = 0;
};

class Session {
 public:
  explicit Session(const std::string& text) : request_(parse(text)), tensors_(request_, engine_) {
    variants_ = std::visit([&](const auto& request) { return make(request); }, request_);
  }
  const problem::Request& request() const { return request_; }
  const Tensors& tensors() const { return tensors_; }
  std::vector<Variant>& variants() { return variants_; }

  void run(const Variant& variant) { variant.sequence.run(stream_); }

  // At least one whole call.
  Timing time(const Variant& variant, double seconds) {
    std::vector<double> times;
    const auto start = Clock::now();
    auto begin = start;
    do {
      run(variant);
      const auto end = Clock::now();
      times.push_back(std::chrono::duration<double, std::nano>(end - begin).count());
      begin = end;
    } while (std::chrono::duration<double>(begin - start).count() < seconds);
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return {*middle, *std::min_element(times.begin(), times.end()), times.size()};
  }

  // Touches all memory, makes oneDNN's own buffers, and keeps the variants that may turn out fastest.
  void warm() {
    std::vector<double> first;
    for (const Variant& variant : variants_) {
      run(variant);
      first.push_back(time(variant, 0.02).least_ns);
    }
    const double best = *std::min_element(first.begin(), first.end());
    for (size_t i = variants_.size(); i-- > 0;)
      if (first[i] > kHopeless * best) variants_.erase(variants_.begin() + static_cast<std::ptrdiff_t>(i));
  }

 private:
  static problem::Request parse(const std::string& text) {
    auto request = problem::parse_request(text);
    if (!request.is_ok()) throw Declined{request.status().message()};
    const auto problem = problem::judge(request.value());
    if (!problem.is_ok()) throw Declined{problem.status().message()};
    if (is_forward(request.value())) throw Declined{"this peer times gradients only"};
    return std::move(request).value();
  }
  std::vector<Variant> make(const problem::ConvRequest& r) { return conv_variants(r, tensors_, engine_); }
  std::vector<Variant> make(const problem::ConvTbcRequest& r) {
    return conv_tbc_variants(r, tensors_, engine_);
  }
  std::vector<Variant> make(const problem::AvgPoolRequest& r) { return pool_variants(r, tensors_, engine_); }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  problem::Request request_;
  Tensors tensors_;
  std::vector<Variant> variants_;
};

void reply(const std::string& line) {
  std::string one_line = line;
  std::replace(one_line.begin(), one_line.end(), '\n', ' ');
  std::cout << one_line << std::endl;
}

std::unique_ptr<Session> open(const std::string& text) {
  try {
    auto session = std::make_unique<Session>(text);
    session->warm();
    std::string names = "ok";
    for (const Variant& variant : session->variants()) names += " " + variant.name;
    std::this_thread::sleep_for(kUntilThreadsSleep);
    reply(names);
    return session;
  } catch (const Declined& declined) {
    reply("no " + declined.reason);
  } catch (const std::exception& error) {
    reply(fmt::format("no {}", error.what()));
  }
  return nullptr;
}

void time_session(Session& session, double seconds) {
  Timing best;
  const Variant* fastest = nullptr;
  for (const Variant& variant : session.variants()) {
    session.time(variant, kSettling);
    const Timing timing = session.time(variant, seconds / static_cast<double>(session.variants().size()));
    if (fastest != nullptr && timing.median_ns >= best.median_ns) continue;
    best = timing;
    fastest = &variant;
  }
  std::this_thread::sleep_for(kUntilThreadsSleep);
  reply(fmt::format("ns {:.0f} {} {}", best.median_ns, best.runs, fastest->name));
}

int serve(int threads) {
  set_threads(threads);
  const dnnl_version_t& version = *dnnl_version();
  reply(fmt::format("ready oneDNN {}.{}.{} {}, {} threads", version.major, version.minor, version.patch,
                    runtime_name(), threads));
  std::unique_ptr<Session> session;
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    const auto starts = [&](const char* word) { return line.rfind(word, 0) == 0; };
    if (starts("problem ")) {
      session.reset();  // its memory first
      session = open(line.substr(std::strlen("problem ")));
    } else if (starts("time ") && session != nullptr) {
      time_session(*session, std::strtod(line.c_str() + std::strlen("time "), nullptr));
    } else {
      reply("no such command here: " + line);
    }
  }
  return 0;
}

// Our own results, computed into the session's tensors and kept.
std::vector<std::vector<std::byte>> results(const Tensors& tensors) {
  std::vector<std::vector<std::byte>> copies;
  for (Operand operand : {Operand::kGradInput, Operand::kGradWeight, Operand::kGradBias}) {
    copies.emplace_back();
    if (!tensors.has(operand)) continue;
    const auto* data = static_cast<const std::byte*>(tensors[operand].get_data_handle());
    copies.back().assign(data, data + tensors[operand].get_desc().get_size());
  }
  return copies;
}

void poison(const Tensors& tensors) {
  for (Operand operand : {Operand::kGradInput, Operand::kGradWeight, Operand::kGradBias})
    if (tensors.has(operand))
      std::memset(tensors[operand].get_data_handle(), 0xFF, tensors[operand].get_desc().get_size());
}

Status compute_ours(const Session& session) {
  RG_TRY(auto problem, problem::judge(session.request()));
  runtime::Device& device = *runtime::find_device(runtime::DeviceKind::kCpu, 0);
  RG_TRY(const auto plan, plan::make_plan(std::move(problem), device, "check"));
  std::vector<std::byte> workspace(plan->workspace_bytes());
  return plan::Plan::execute(plan, session.tensors().bindings(), workspace.data(), workspace.size(),
                             *device.null_stream());
}

// Sums of small integers are exact in any order. Pooling divides, so its terms, of at most 2 each, are
// rounded: once as quotients and once as they are added.
double tolerance(const problem::Request& request) {
  const auto* pool = std::get_if<problem::AvgPoolRequest>(&request);
  if (pool == nullptr) return 0;
  double terms = 1;
  for (int64_t size : pool->kernel) terms *= static_cast<double>(size);
  constexpr double kBFloatUlp = 0x1p-8, kFloatUlp = 0x1p-23;
  return 2 * 2 * terms * (pool->input.dtype == DType::kF32 ? kFloatUlp : kBFloatUlp);
}

// The gaps between elements hold the poison on both sides.
bool same(const std::vector<std::byte>& a, const std::vector<std::byte>& b, DType dtype, double allowed) {
  for (size_t at = 0; at < a.size(); at += size_of(dtype)) {
    const float x = load_as_f32(dtype, a.data() + at), y = load_as_f32(dtype, b.data() + at);
    const bool near = std::abs(x - y) <= allowed;
    if (!near && std::memcmp(a.data() + at, b.data() + at, size_of(dtype)) != 0) return false;
  }
  return true;
}

bool check(const std::string& text) {
  try {
    Session session(text);
    poison(session.tensors());
    if (const Status status = compute_ours(session); !status.is_ok()) throw Declined{status.message()};
    const auto ours = results(session.tensors());
    const DType dtype = std::visit([](const auto& r) { return r.input.dtype; }, session.request());
    const double allowed = tolerance(session.request());
    bool good = true;
    for (const Variant& variant : session.variants()) {
      poison(session.tensors());
      session.run(variant);
      const auto theirs = results(session.tensors());
      std::string verdict = "same";
      for (size_t i = 0; i < ours.size(); ++i) {
        if (same(ours[i], theirs[i], dtype, allowed)) continue;
        constexpr const char* kNames[] = {"grad_input", "grad_weight", "grad_bias"};
        verdict = fmt::format("DIFFERENT {}", kNames[i]);
        good = false;
      }
      fmt::print("{:<18} {:>2} reorders  {:<21} {}\n", variant.name, variant.sequence.reorders(), verdict,
                 text);
    }
    return good;
  } catch (const Declined& declined) {
    fmt::print("no {}: {}\n", declined.reason, text);
  }
  return true;
}

int run(const std::vector<std::string>& arguments) {
  prepare_runtime();
  if (!arguments.empty() && arguments[0] == "--check") {
    bool good = true;
    for (size_t i = 1; i < arguments.size(); ++i) good = check(arguments[i]) && good;
    return good ? 0 : 1;
  }
  int threads = 0;
  if (arguments.size() == 2 && arguments[0] == "--threads")
    std::from_chars(arguments[1].data(), arguments[1].data() + arguments[1].size(), threads);
  if (threads > 0) return serve(threads);
  fmt::print(stderr, "usage: retrograd-peer-onednn --threads N | --check \"<problem>\"…\n");
  return 2;
}

}  // namespace
}  // namespace retrograd::peers

int main(int argc, char** argv) {
  try {
    return retrograd::peers::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "retrograd-peer-onednn: {}\n", error.what());
    return 1;
  }
}
