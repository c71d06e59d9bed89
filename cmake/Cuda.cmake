# Whether tally-train is built with CUDA, and with which headers. Sets TALLY_WITH_CUDA.
set(TALLY_WITH_CUDA OFF)
if(NOT TALLY_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS ${TALLY_SITE_PACKAGES}/nvidia/cu13/bin/nvcc)
    set(CMAKE_CUDA_COMPILER ${TALLY_SITE_PACKAGES}/nvidia/cu13/bin/nvcc)
  endif()
  check_language(CUDA)
  # scripts/setup --cpu installs LibTorch without the libraries that its CUDA half needs.
  set(tally_torch_for_cuda OFF)
  if(EXISTS ${tally_torch}/lib/libtorch_cuda.so AND
      (EXISTS ${TALLY_SITE_PACKAGES}/nvidia/cudnn OR NOT EXISTS ${TALLY_SITE_PACKAGES}/nvidia))
    set(tally_torch_for_cuda ON)
  endif()
  if(CMAKE_CUDA_COMPILER AND tally_torch_for_cuda)
    set(CMAKE_CUDA_ARCHITECTURES ${TALLY_CUDA_ARCHITECTURES})
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 17)  # CMake 3.25 knows no CUDA20; kernels see no torch header, so 17 is enough
    find_package(CUDAToolkit REQUIRED)
    set(TALLY_WITH_CUDA ON)
  elseif(TALLY_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TALLY_CUDA=ON, but there is no CUDA compiler (nvcc) or no CUDA build of LibTorch in "
      "'${TALLY_SITE_PACKAGES}'. Install the CUDA Toolkit 13, or run scripts/setup --cuda.")
  endif()
endif()
message(STATUS "CUDA in tally-train: ${TALLY_WITH_CUDA}")
if(TALLY_WITH_CUDA)
  message(STATUS "GPU architectures: ${TALLY_CUDA_ARCHITECTURES}")
endif()
