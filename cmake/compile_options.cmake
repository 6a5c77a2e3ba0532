# What everything of ours is compiled with: one interface target carries the flags.
find_program(RETROGRAD_CCACHE ccache)
if(PROJECT_IS_TOP_LEVEL AND RETROGRAD_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${RETROGRAD_CCACHE})
  # Without it, what includes a precompiled header (tests/CMakeLists.txt) would not be kept.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${RETROGRAD_CCACHE})
endif()
# What ccache asks for where a precompiled header is used.
set(RETROGRAD_CACHED_HEADERS $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess> "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")

# retrograd_compiled_as_one(<targets…>): with RETROGRAD_UNITY, the files of each of them are one. They have no names in
# common, in unnamed namespaces neither.
function(retrograd_compiled_as_one)
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ${RETROGRAD_UNITY} UNITY_BUILD_BATCH_SIZE 0)
endfunction()

string(REGEX MATCH "^(aarch64|arm64)$" RETROGRAD_ON_ARM "${CMAKE_SYSTEM_PROCESSOR}")

# What this machine has of x86's instruction sets, for tests that leave out what others do anyway.
set(RETROGRAD_HERE "")
if(NOT CMAKE_CROSSCOMPILING AND EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo RETROGRAD_HERE REGEX "^flags" LIMIT_COUNT 1)
endif()
# AVX-512 takes as long to compile as AVX2, and more.
set(RETROGRAD_WITHOUT_AVX512 OFF)
if(RETROGRAD_THIS_MACHINE AND RETROGRAD_HERE AND NOT RETROGRAD_HERE MATCHES " avx512bw ")
  set(RETROGRAD_WITHOUT_AVX512 ON)
endif()

add_library(retrograd_options INTERFACE)
target_compile_features(retrograd_options INTERFACE cxx_std_20)
target_compile_options(retrograd_options INTERFACE
  $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Wall;-Wextra;-Wshadow;-Wconversion>
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
  $<$<AND:$<BOOL:${RETROGRAD_WERROR}>,$<NOT:$<COMPILE_LANGUAGE:CUDA>>>:-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
  $<$<AND:$<BOOL:${RETROGRAD_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>
  # The bits of a result must not depend on which products a compiler chose to fuse.
  $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-ffp-contract=off>)

# The consumers that tests/install builds need the same flags: a sanitized library loads into a sanitized program only.
set(RETROGRAD_SANITIZE_FLAGS "")
if(RETROGRAD_SANITIZE)
  set(RETROGRAD_SANITIZE_FLAGS -fsanitize=${RETROGRAD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_compile_options(retrograd_options INTERFACE ${RETROGRAD_SANITIZE_FLAGS})
  # Much of what clang takes for a file of src/. What is read through a null pointer, outside of an object or of a dead
  # one is what the address sanitizer stops at anyway.
  if(RETROGRAD_SANITIZE MATCHES undefined)
    target_compile_options(retrograd_options INTERFACE -fno-sanitize=null,object-size,vptr)
  endif()
  target_link_options(retrograd_options INTERFACE -fsanitize=${RETROGRAD_SANITIZE})
endif()
