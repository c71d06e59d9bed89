# A cross build for aarch64 by Debian's compiler (preset static-aarch64). Libraries are Debian's for
# arm64, unpacked by scripts/setup --aarch64; tests run under qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# By its whole path: tests set PATH.
find_program(TALLY_QEMU qemu-aarch64)
set(CMAKE_CROSSCOMPILING_EMULATOR ${TALLY_QEMU};-L;/usr/aarch64-linux-gnu)

set(TALLY_AARCH64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../.deps/aarch64 CACHE PATH "Debian's libraries for arm64, unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TALLY_AARCH64_ROOT)
set(CMAKE_FIND_ROOT_PATH ${TALLY_AARCH64_ROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
