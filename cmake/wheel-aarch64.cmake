# The wheel of tally-train for aarch64 (preset wheel-aarch64): Debian's cross compiler (aarch64.cmake), and the libraries that
# scripts/setup --aarch64 --wheel unpacked, finished as those of this machine (wheel.cmake).
set(TALLY_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../.deps/sysroot-aarch64 CACHE PATH "Libraries of an older system, for a wheel")
set(TALLY_AARCH64_ROOT ${TALLY_SYSROOT} CACHE PATH "Debian's libraries for arm64, unpacked")
include(${CMAKE_CURRENT_LIST_DIR}/aarch64.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/wheel.cmake)
# A cross compiler looks in a folder with its own C library's headers before a sysroot's: all its folders are named here, and
# the sysroot's, of which some have LibTorch's headers of the same names, after all others.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=include OUTPUT_VARIABLE tally_own OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -dumpversion OUTPUT_VARIABLE tally_version OUTPUT_STRIP_TRAILING_WHITESPACE)
set(tally_cxx /usr/aarch64-linux-gnu/include/c++/${tally_version})
set(tally_after "-isystem ${tally_own} -idirafter ${TALLY_SYSROOT}/usr/include/aarch64-linux-gnu -idirafter ${TALLY_SYSROOT}/usr/include")
set(CMAKE_C_FLAGS_INIT "-nostdinc ${tally_after}")
string(PREPEND CMAKE_CXX_FLAGS_INIT "-nostdinc -isystem ${tally_cxx} -isystem ${tally_cxx}/aarch64-linux-gnu ${tally_after} ")

# With GPU kernels: nvcc and its headers are this machine's, CUDA's libraries those of NVIDIA's wheels for aarch64.
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
if(TALLY_SITE_PACKAGES)
  set(tally_cuda ${TALLY_SITE_PACKAGES}/nvidia/cu13/lib)
  get_filename_component(tally_toolkit "${CMAKE_CUDA_COMPILER}" DIRECTORY)
  set(tally_headers ${tally_toolkit}/../include)
  set(CMAKE_CUDA_FLAGS_INIT "-I${tally_headers} -isystem ${tally_headers}/cccl -L${tally_cuda}")
  # All that is linked, by name: CMake would find this machine's. The driver's stub is in no wheel; nothing calls the driver.
  set(CUDA_CUDART ${tally_cuda}/libcudart.so.13 CACHE FILEPATH "CUDA's runtime for aarch64")
  set(CUDA_cudart_LIBRARY ${tally_cuda}/libcudart.so.13 CACHE FILEPATH "CUDA's runtime for aarch64")
  set(CUDA_cublasLt_LIBRARY ${tally_cuda}/libcublasLt.so.13 CACHE FILEPATH "cuBLASLt for aarch64")
  set(CUDA_nvrtc_LIBRARY ${tally_cuda}/libnvrtc.so.13 CACHE FILEPATH "NVRTC for aarch64")
  set(CUDA_cuda_driver_LIBRARY "" CACHE FILEPATH "none")
endif()
