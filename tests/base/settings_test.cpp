// SPDX-License-Identifier: Apache-2.0
// Every RETROGRAD_ variable with legal and illegal values; a warning names variable, value, legal values,
// remedy.
#include "base/settings.h"

#include <gtest/gtest.h>

#include <map>

#include "probe.h"

namespace retrograd {
namespace {

ParsedSettings parse(const std::map<std::string, std::string, std::less<>>& variables) {
  return parse_settings([&](std::string_view name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional<std::string>(it->second);
  });
}

// The settings of one variable that must not be warned about.
Settings legal(const std::string& variable, const std::string& value) {
  const ParsedSettings parsed = parse({{variable, value}});
  EXPECT_TRUE(parsed.warnings.empty()) << parsed.warnings.front();
  return parsed.settings;
}

std::string illegal(const std::string& variable, const std::string& value) {
  const ParsedSettings parsed = parse({{variable, value}});
  EXPECT_EQ(parsed.warnings.size(), 1u) << variable << "=" << value;
  return parsed.warnings.empty() ? "" : parsed.warnings.front();
}

void expect_topics(const Settings& s, bool warnings, bool errors, bool dispatch, bool calls) {
  EXPECT_EQ(s.warnings, warnings);
  EXPECT_EQ(s.errors, errors);
  EXPECT_EQ(s.dispatch, dispatch);
  EXPECT_EQ(s.calls, calls);
}

void expect_defaults(const Settings& s) {
  EXPECT_EQ(s.num_threads, 0);
  EXPECT_EQ(s.device, std::nullopt);
  EXPECT_EQ(s.hf32_mantissa_bits, 11);
  EXPECT_FALSE(s.winograd);
  EXPECT_EQ(s.rules, std::nullopt);
  EXPECT_EQ(s.soc_name, "");
  EXPECT_EQ(s.cuda_architecture, 0);
  EXPECT_EQ(s.cpu_isa, "");
  EXPECT_EQ(s.bits, Bits::kFast);
  EXPECT_EQ(s.workspace_limit, SIZE_MAX);
  expect_topics(s, true, false, false, false);
}

TEST(Settings, AreTheDefaultsWhenNothingIsSet) { expect_defaults(parse({}).settings); }

TEST(Settings, TakeAnEmptyValueAsNotSet) {
  for (const char* variable :
       {"RETROGRAD_NUM_THREADS", "RETROGRAD_DEVICE", "RETROGRAD_HF32_BITS", "RETROGRAD_WINOGRAD",
        "RETROGRAD_RULES", "RETROGRAD_SOC_NAME", "RETROGRAD_CUDA_ARCH", "RETROGRAD_CPU_ISA", "RETROGRAD_BITS",
        "RETROGRAD_WORKSPACE_LIMIT", "RETROGRAD_VERBOSE"}) {
    expect_defaults(legal(variable, ""));
  }
}

TEST(Settings, TakeOneTo1024Threads) {
  EXPECT_EQ(legal("RETROGRAD_NUM_THREADS", "1").num_threads, 1);
  EXPECT_EQ(legal("RETROGRAD_NUM_THREADS", "16").num_threads, 16);
  EXPECT_EQ(legal("RETROGRAD_NUM_THREADS", "1024").num_threads, 1024);
}

TEST(Settings, RefuseOtherNumbersOfThreads) {
  for (const char* value :
       {"0", "1025", "-1", "+4", " 4", "4 ", "4x", "4.0", "0x4", "many", "99999999999999999999"}) {
    EXPECT_EQ(illegal("RETROGRAD_NUM_THREADS", value),
              "RETROGRAD_NUM_THREADS is \"" + std::string(value) +
                  "\", legal is a whole number from 1 to 1024; one thread a core is used instead");
    expect_defaults(parse({{"RETROGRAD_NUM_THREADS", value}}).settings);
  }
}

TEST(Settings, TakeTheThreeDeviceChoices) {
  EXPECT_EQ(legal("RETROGRAD_DEVICE", "cpu").device, DeviceChoice::kCpu);
  EXPECT_EQ(legal("RETROGRAD_DEVICE", "cuda").device, DeviceChoice::kCuda);
  EXPECT_EQ(legal("RETROGRAD_DEVICE", "auto").device, DeviceChoice::kAuto);
}

TEST(Settings, RefuseOtherDeviceChoices) {
  for (const char* value : {"gpu", "CPU", "cpu ", "0", "cuda:0"}) {
    EXPECT_EQ(device_choice_from_name(value), std::nullopt);
    const std::string warning = illegal("RETROGRAD_DEVICE", value);
    EXPECT_NE(
        warning.find("RETROGRAD_DEVICE is \"" + std::string(value) + "\", legal is cpu, cuda or auto; "),
        std::string::npos)
        << warning;
    EXPECT_NE(warning.find("auto is used"), std::string::npos) << warning;
    expect_defaults(parse({{"RETROGRAD_DEVICE", value}}).settings);
  }
}

TEST(Settings, TakeTenOrElevenBitsForHf32) {
  EXPECT_EQ(legal("RETROGRAD_HF32_BITS", "10").hf32_mantissa_bits, 10);
  EXPECT_EQ(legal("RETROGRAD_HF32_BITS", "11").hf32_mantissa_bits, 11);
}

TEST(Settings, RefuseOtherBitsForHf32) {
  for (const char* value : {"9", "12", "010", "ten", "1"}) {
    EXPECT_EQ(illegal("RETROGRAD_HF32_BITS", value),
              "RETROGRAD_HF32_BITS is \"" + std::string(value) + "\", legal is 10 or 11; 11 is used instead");
    expect_defaults(parse({{"RETROGRAD_HF32_BITS", value}}).settings);
  }
}

TEST(Settings, TakeComputeCapabilitiesFrom80On) {
  EXPECT_EQ(legal("RETROGRAD_CUDA_ARCH", "80").cuda_architecture, 80);
  EXPECT_EQ(legal("RETROGRAD_CUDA_ARCH", "100").cuda_architecture, 100);
  for (const char* value : {"75", "8.0", "sm_80", "-80", "1000"}) {
    EXPECT_EQ(
        illegal("RETROGRAD_CUDA_ARCH", value),
        "RETROGRAD_CUDA_ARCH is \"" + std::string(value) +
            "\", legal is a compute capability from 80 on, such as 80 or 90; all that the GPU has is used");
    expect_defaults(parse({{"RETROGRAD_CUDA_ARCH", value}}).settings);
  }
}

TEST(Settings, TakeTheFourProductsForRules) {
  EXPECT_EQ(legal("RETROGRAD_RULES", "a2").rules, Product::kA2);
  EXPECT_EQ(legal("RETROGRAD_RULES", "a3").rules, Product::kA3);
  EXPECT_EQ(legal("RETROGRAD_RULES", "910_95").rules, Product::k910_95);
  EXPECT_EQ(legal("RETROGRAD_RULES", "training").rules, Product::kTraining);
  for (const char* value : {"A2", "a4", "910", "all", " a2", "1"}) {
    EXPECT_EQ(illegal("RETROGRAD_RULES", value),
              "RETROGRAD_RULES is \"" + std::string(value) +
                  "\", legal is a2, a3, 910_95 or training; it is ignored, and no product's rules are kept "
                  "unless a configuration file says so");
    expect_defaults(parse({{"RETROGRAD_RULES", value}}).settings);
  }
}

TEST(Settings, TakeAnyNameOfAChip) {
  EXPECT_EQ(legal("RETROGRAD_SOC_NAME", "Ascend910B4").soc_name, "Ascend910B4");
  EXPECT_EQ(legal("RETROGRAD_SOC_NAME", "my card").soc_name, "my card");
}

TEST(Settings, TakeZeroOrOneForWinograd) {
  EXPECT_FALSE(legal("RETROGRAD_WINOGRAD", "0").winograd);
  EXPECT_TRUE(legal("RETROGRAD_WINOGRAD", "1").winograd);
  for (const char* value : {"2", "01", "yes", "-1"}) {
    EXPECT_EQ(illegal("RETROGRAD_WINOGRAD", value),
              "RETROGRAD_WINOGRAD is \"" + std::string(value) + "\", legal is 0 or 1; 0 is used instead");
    expect_defaults(parse({{"RETROGRAD_WINOGRAD", value}}).settings);
  }
}

TEST(Settings, TakeFastOrPortableBits) {
  EXPECT_EQ(legal("RETROGRAD_BITS", "fast").bits, Bits::kFast);
  EXPECT_EQ(legal("RETROGRAD_BITS", "portable").bits, Bits::kPortable);
  for (const char* value : {"1", "Portable", "exact"}) {
    EXPECT_EQ(illegal("RETROGRAD_BITS", value), "RETROGRAD_BITS is \"" + std::string(value) +
                                                    "\", legal is fast or portable; fast is used instead");
    expect_defaults(parse({{"RETROGRAD_BITS", value}}).settings);
  }
}

TEST(Settings, TakeTheNamesOfInstructionSets) {
  for (const std::string_view isa : kCpuIsas)
    EXPECT_EQ(legal("RETROGRAD_CPU_ISA", std::string(isa)).cpu_isa, isa);
}

TEST(Settings, RefuseOtherInstructionSets) {
  for (const char* value : {"AVX2", "avx", "avx3", "avx2,sse4", "0"}) {
    EXPECT_EQ(illegal("RETROGRAD_CPU_ISA", value),
              "RETROGRAD_CPU_ISA is \"" + std::string(value) +
                  "\", legal is amx_fp16, amx_bf16, avx512_bf16, avx512, avx2, sse4, neon, baseline; "
                  "the best instruction set of the machine is used "
                  "instead");
    expect_defaults(parse({{"RETROGRAD_CPU_ISA", value}}).settings);
  }
}

TEST(Settings, TakeBytesWithAndWithoutAUnitForTheWorkspace) {
  const auto limit = [](const char* value) {
    return legal("RETROGRAD_WORKSPACE_LIMIT", value).workspace_limit;
  };
  EXPECT_EQ(limit("0"), 0u);
  EXPECT_EQ(limit("0K"), 0u);
  EXPECT_EQ(limit("12345"), 12345u);
  EXPECT_EQ(limit("3K"), 3072u);
  EXPECT_EQ(limit("64M"), size_t{64} << 20);
  EXPECT_EQ(limit("17179869183G"), size_t{17179869183} << 30);
  EXPECT_EQ(limit("18446744073709551615"), SIZE_MAX);
}

TEST(Settings, RefuseOtherLimitsOfTheWorkspace) {
  for (const char* value :
       {"-1", "K", "1k", "1 M", "M1", "1KB", "1.5G", "17179869184G", "18446744073709551616", "unlimited"}) {
    EXPECT_EQ(illegal("RETROGRAD_WORKSPACE_LIMIT", value),
              "RETROGRAD_WORKSPACE_LIMIT is \"" + std::string(value) +
                  "\", legal is a number of bytes, with K, M or G behind it or without; the default limit is "
                  "used instead");
    expect_defaults(parse({{"RETROGRAD_WORKSPACE_LIMIT", value}}).settings);
  }
}

TEST(Settings, TurnOnTheNamedTopicsAndKeepWarnings) {
  expect_topics(legal("RETROGRAD_VERBOSE", "warning"), true, false, false, false);
  expect_topics(legal("RETROGRAD_VERBOSE", "error"), true, true, false, false);
  expect_topics(legal("RETROGRAD_VERBOSE", "dispatch"), true, false, true, false);
  expect_topics(legal("RETROGRAD_VERBOSE", "call"), true, false, false, true);
  expect_topics(legal("RETROGRAD_VERBOSE", "all"), true, true, true, true);
  expect_topics(legal("RETROGRAD_VERBOSE", "call,error"), true, true, false, true);
  expect_topics(legal("RETROGRAD_VERBOSE", " call , ,error,"), true, true, false, true);
}

TEST(Settings, TurnOffWarningsByNoneUnlessTheyAreNamedToo) {
  expect_topics(legal("RETROGRAD_VERBOSE", "none"), false, false, false, false);
  expect_topics(legal("RETROGRAD_VERBOSE", "none,call"), false, false, false, true);
  expect_topics(legal("RETROGRAD_VERBOSE", "call,none"), false, false, false, true);
  expect_topics(legal("RETROGRAD_VERBOSE", "warning,none"), true, false, false, false);
  expect_topics(legal("RETROGRAD_VERBOSE", "all,none"), true, true, true, true);
}

TEST(Settings, WarnAboutEveryUnknownTopicAndTakeTheKnownOnes) {
  const ParsedSettings parsed = parse({{"RETROGRAD_VERBOSE", "dispach,call,2,Error"}});
  expect_topics(parsed.settings, true, false, false, true);
  ASSERT_EQ(parsed.warnings.size(), 3u);
  const char* words[] = {"dispach", "2", "Error"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(
        parsed.warnings[i],
        "RETROGRAD_VERBOSE is \"" + std::string(words[i]) +
            "\", legal is a comma list of none, warning, error, dispatch, call, all; this word is ignored "
            "and the others are used");
  }
}

TEST(Settings, WarnAboutEachVariableAndUseTheLegalOnes) {
  const ParsedSettings parsed = parse({{"RETROGRAD_NUM_THREADS", "none"},
                                       {"RETROGRAD_DEVICE", "tpu"},
                                       {"RETROGRAD_HF32_BITS", "10"},
                                       {"RETROGRAD_VERBOSE", "loud"}});
  EXPECT_EQ(parsed.warnings.size(), 3u);
  EXPECT_EQ(parsed.settings.hf32_mantissa_bits, 10);
}

TEST(Settings, ShowOnlyTheBeginningOfAnEndlessValue) {
  const std::string warning = illegal("RETROGRAD_DEVICE", std::string(100'000, 'x'));
  EXPECT_NE(warning.find(std::string(80, 'x') + "...\""), std::string::npos);
  EXPECT_LT(warning.size(), 400u);
}

TEST(Settings, ComeFromTheEnvironmentOfTheProcess) {
  const auto set = test::run_probe(
      "settings",
      {{"RETROGRAD_NUM_THREADS", "3"}, {"RETROGRAD_DEVICE", "cpu"}, {"RETROGRAD_HF32_BITS", "10"}});
  EXPECT_EQ(set.exit_code, 0);
  EXPECT_EQ(set.lines, (std::vector<std::string>{"num_threads=3 device=1 hf32=10"}));
  const auto unset = test::run_probe("settings", {});
  EXPECT_EQ(unset.lines, (std::vector<std::string>{"num_threads=0 device=-1 hf32=11"}));
}

TEST(Settings, LogTheirWarningsAtFirstUse) {
  const auto warned = test::run_probe("settings", {{"RETROGRAD_HF32_BITS", "9"}});
  EXPECT_EQ(warned.exit_code, 0);
  EXPECT_EQ(warned.lines,
            (std::vector<std::string>{
                "retrograd: warning: RETROGRAD_HF32_BITS is \"9\", legal is 10 or 11; 11 is used instead",
                "num_threads=0 device=-1 hf32=11"}));
  const auto silenced =
      test::run_probe("settings", {{"RETROGRAD_HF32_BITS", "9"}, {"RETROGRAD_VERBOSE", "none"}});
  EXPECT_EQ(silenced.lines, (std::vector<std::string>{"num_threads=0 device=-1 hf32=11"}));
}

// Defaults in their place would stay with whatever was made of them: the pool, the choice of kernels.
TEST(Settings, AreRefusedWithoutMemoryAndReadLater) {
  const auto result = test::run_probe("settings_without_memory", {{"RETROGRAD_NUM_THREADS", "3"}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.lines, (std::vector<std::string>{"refused=1 threads=3"}));
}

}  // namespace
}  // namespace retrograd
