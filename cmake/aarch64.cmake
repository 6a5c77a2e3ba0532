# Toolchain: Linux on aarch64, with Debian's cross compiler, and qemu's user mode for what is built. Libraries come from a
# folder of unpacked arm64 packages, which scripts/aarch64 makes: this machine's own stay as they are.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

set(RETROGRAD_AARCH64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-root CACHE PATH
    "The folder with usr/lib/aarch64-linux-gnu and usr/include of the libraries that are linked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RETROGRAD_AARCH64_ROOT)
cmake_path(ABSOLUTE_PATH RETROGRAD_AARCH64_ROOT NORMALIZE OUTPUT_VARIABLE CMAKE_FIND_ROOT_PATH)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

find_program(RETROGRAD_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(RETROGRAD_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${RETROGRAD_QEMU} -L ${CMAKE_FIND_ROOT_PATH})
endif()
