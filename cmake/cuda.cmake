# RETROGRAD_CUDA: whether the CUDA device and its engines are compiled. RETROGRAD_WITH_CUDA says what came of it. The CUDA
# runtime is linked statically and asks for the driver when it is first used, so the same binaries run without a GPU.
set(RETROGRAD_CUDA AUTO CACHE STRING "NVIDIA GPUs: ON, OFF, or AUTO (where nvcc and the static CUDA runtime are)")
set_property(CACHE RETROGRAD_CUDA PROPERTY STRINGS AUTO ON OFF)

set(RETROGRAD_WITH_CUDA OFF)
# The sanitizers do not know device code, and the fuzzers are compiled by clang.
if(RETROGRAD_CUDA STREQUAL AUTO AND (RETROGRAD_SANITIZE OR RETROGRAD_FUZZERS))
  message(STATUS "RETROGRAD_CUDA: off, this build is sanitized")
elseif(RETROGRAD_CUDA STREQUAL AUTO)
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE AND TARGET CUDA::cudart_static)
    set(RETROGRAD_WITH_CUDA ON)
  endif()
  message(STATUS "RETROGRAD_CUDA: ${RETROGRAD_WITH_CUDA}")
elseif(RETROGRAD_CUDA)
  find_package(CUDAToolkit REQUIRED)
  set(RETROGRAD_WITH_CUDA ON)
endif()
if(NOT RETROGRAD_WITH_CUDA)
  return()
endif()

# Machine code for Ampere and Hopper, PTX for what comes after.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
endif()
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
if(PROJECT_IS_TOP_LEVEL AND RETROGRAD_CCACHE AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${RETROGRAD_CCACHE})
endif()
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
enable_language(CUDA)
# CMake 3.25 knows no C++20 for this compiler: the flag by hand.
string(APPEND CMAKE_CUDA_FLAGS " -std=c++20")
# RETROGRAD_CUDA_QUICK: where kernels need only compile. ptxas, most of the time, then leaves its long optimisations out; older
# nvccs have no such option and take as long as ever.
if(RETROGRAD_CUDA_QUICK)
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --help OUTPUT_VARIABLE help ERROR_QUIET)
  if(help MATCHES "--Ofast-compile")
    string(APPEND CMAKE_CUDA_FLAGS " --Ofast-compile=max")
  endif()
endif()
