# LibTorch out of PyTorch's wheel, as two imported targets:
#   tally::torch       headers, libtorch_cpu, libc10
#   tally::torch_cuda  the same and libtorch_cuda, libc10_cuda (when the wheel has them)
# find_package(Torch) is not used: with a CUDA wheel it insists on nvcc, and it adds CUDA flags to
# every target. TALLY_SITE_PACKAGES names the directory that holds torch/ and nvidia/.
if(NOT TALLY_SITE_PACKAGES)
  file(GLOB tally_sites ${CMAKE_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages)
  list(GET tally_sites 0 tally_site)
  set(TALLY_SITE_PACKAGES "${tally_site}" CACHE PATH "Directory that holds torch/ (a Python site-packages)")
endif()
set(tally_torch ${TALLY_SITE_PACKAGES}/torch)
if(NOT EXISTS ${tally_torch}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "LibTorch was not found in '${TALLY_SITE_PACKAGES}'. Run scripts/setup, name the site-packages "
    "directory of an installed torch 2.11 with -DTALLY_SITE_PACKAGES=DIR, or build tally alone with -DTALLY_TRAIN=OFF.")
endif()
file(STRINGS ${tally_torch}/version.py tally_torch_version REGEX "^__version__")
string(REGEX REPLACE ".*'([^']+)'.*" "\\1" TALLY_TORCH_VERSION "${tally_torch_version}")
message(STATUS "LibTorch ${TALLY_TORCH_VERSION} in ${tally_torch}")

file(GLOB tally_nvidia_dirs ${TALLY_SITE_PACKAGES}/nvidia/*/lib)
set(TALLY_TORCH_RPATH ${tally_torch}/lib ${tally_nvidia_dirs})

add_library(tally_torch INTERFACE)
add_library(tally::torch ALIAS tally_torch)
target_include_directories(tally_torch SYSTEM INTERFACE ${tally_torch}/include
  ${tally_torch}/include/torch/csrc/api/include)
target_link_libraries(tally_torch INTERFACE ${tally_torch}/lib/libtorch_cpu.so ${tally_torch}/lib/libc10.so)
# libtorch_cpu needs libcudart and libcupti even without a GPU; they lie beside it under nvidia/.
foreach(dir ${tally_nvidia_dirs})
  target_link_options(tally_torch INTERFACE -Wl,-rpath-link,${dir})
endforeach()

add_library(tally_torch_cuda INTERFACE)
add_library(tally::torch_cuda ALIAS tally_torch_cuda)
target_link_libraries(tally_torch_cuda INTERFACE tally_torch)
if(EXISTS ${tally_torch}/lib/libtorch_cuda.so)
  target_link_libraries(tally_torch_cuda INTERFACE -Wl,--no-as-needed ${tally_torch}/lib/libtorch_cuda.so
    ${tally_torch}/lib/libc10_cuda.so -Wl,--as-needed)
endif()
list(APPEND CMAKE_BUILD_RPATH ${TALLY_TORCH_RPATH})
if(TALLY_WHEEL)
  # site-packages/tally_train/bin: torch/ and nvidia/ are in site-packages, or where tally-train-libtorch unpacked them.
  foreach(site ../.. ../libtorch)
    foreach(folder torch nvidia/cu13 nvidia/cudnn nvidia/nccl)
      list(APPEND CMAKE_INSTALL_RPATH $ORIGIN/${site}/${folder}/lib)
    endforeach()
  endforeach()
else()
  list(APPEND CMAKE_INSTALL_RPATH ${TALLY_TORCH_RPATH})
endif()
