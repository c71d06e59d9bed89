# A build of tally-train for a wheel: with this machine's compiler, linked with the libraries of an older system, which
# scripts/setup --wheel unpacked and packaging/make_sysroot.py finished. All other libraries are linked as archives, but
# LibTorch and NVIDIA's, which lie beside the wheel (LibTorch.cmake).
set(TALLY_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../.deps/sysroot CACHE PATH "Libraries of an older system, for a wheel")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TALLY_SYSROOT)
set(TALLY_WHEEL ON)
set(TALLY_LIBRARIES ${TALLY_SYSROOT})
set(CMAKE_SYSROOT ${TALLY_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# LibTorch and CUDA are found by their whole paths.
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# A compiler looks in its own machine's folders first, so these are named before them: -B for what starts a program, -L
# for libraries. CMake does not say --sysroot where it links a program of CUDA's.
set(tally_libraries x86_64-linux-gnu)
if(CMAKE_LIBRARY_ARCHITECTURE)  # of a cross compiler
  set(tally_libraries ${CMAKE_LIBRARY_ARCHITECTURE})
endif()
set(tally_link "--sysroot=${TALLY_SYSROOT} -B${TALLY_SYSROOT}/usr/lib/${tally_libraries} -L${TALLY_SYSROOT}/link")
string(APPEND tally_link " -L${TALLY_SYSROOT}/usr/lib/${tally_libraries} -L${TALLY_SYSROOT}/lib/${tally_libraries} -Wl,-z,now")
# An older glibc has threads in a library of their own, and std::thread asks at run time whether it is there.
string(APPEND tally_link " -Wl,--no-as-needed -lpthread -Wl,--as-needed")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT ${tally_link})
endforeach()
set(CMAKE_CXX_STANDARD_LIBRARIES "-ldl -lrt")
set(CMAKE_CXX_FLAGS_INIT "-include ${CMAKE_CURRENT_LIST_DIR}/../packaging/wheel/older_glibc.h")
# Kernels are compiled with this machine's headers: of the system's library they call nothing that the linker would not find.
