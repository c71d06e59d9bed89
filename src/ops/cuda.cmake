# The CUDA versions of the operations: cuBLASLt, cuDNN through its front end, CUTLASS, kernels of our own. None of them
# sees a header of LibTorch.
find_path(TALLY_CUDNN_FRONTEND cudnn_frontend.h HINTS ${TALLY_SITE_PACKAGES}/include)
find_path(TALLY_CUDNN_INCLUDE cudnn.h HINTS ${TALLY_SITE_PACKAGES}/nvidia/cudnn/include
  ${CUDAToolkit_INCLUDE_DIRS})
find_library(TALLY_CUDNN_LIBRARY NAMES libcudnn.so.9 cudnn HINTS ${TALLY_SITE_PACKAGES}/nvidia/cudnn/lib
  ${CUDAToolkit_LIBRARY_DIR})

set(train_ops_cuda_sources
  column_sums.cu nvtx.cc
  attention/cuda.cc attention/rotary.cu
  attention/flash/flash.cu attention/flash/float64.cu attention/flash/ieee.cu attention/flash/tf32.cu attention/flash/tf32x3.cu
  attention/hopper/hopper.cc attention/hopper/map.cc attention/hopper/short.cc
  attention/library/cudnn_tables.cu attention/library/unfused.cu
  embedding/cuda.cu
  fp8/cuda.cu fp8/gemm.cc fp8/scaled_cast.cu
  gemm/candidates.cc gemm/float64.cu gemm/fused.cc gemm/gemm.cc gemm/problem.cc gemm/split.cu gemm/timing.cc gemm/tuned_gemm.cc gemm/tuned_gemms.cc
  linear/cuda.cc linear/cuda_activation.cc linear/passes.cu
  loss/cross_entropy.cu loss/fused.cc loss/fused_passes.cu loss/vocab_parallel.cu
  norm/backward.cu norm/forward.cu norm/head_norm.cu norm/residual.cu
  optimizer/cuda.cu optimizer/lamb.cu optimizer/sgd.cu
  rows/cuda.cu swiglu/cuda.cu)

if(TALLY_CUDNN_FRONTEND AND TALLY_CUDNN_INCLUDE AND TALLY_CUDNN_LIBRARY)
  message(STATUS "Attention: cuDNN (${TALLY_CUDNN_LIBRARY}) through ${TALLY_CUDNN_FRONTEND}, and kernels of our own")
  set(tally_cudnn ON)
  list(APPEND train_ops_cuda_sources attention/library/cudnn.cc)
  # Host code that runs once a shape: optimising it would only make the longest compile longer.
  set_source_files_properties(attention/library/cudnn.cc PROPERTIES
    COMPILE_OPTIONS "-O0"
    COMPILE_DEFINITIONS "CUDNN_FRONTEND_SKIP_JSON_LIB")
else()
  message(STATUS "Attention: kernels of our own alone (cuDNN's front end was not found; pip install nvidia-cudnn-frontend)")
  set(tally_cudnn OFF)
endif()

find_path(TALLY_CUTLASS_INCLUDE cutlass/cutlass.h HINTS ${TALLY_SITE_PACKAGES}/cutlass_library/source/include)
set(tally_cutlass OFF)
if(TALLY_CUTLASS_INCLUDE AND "90" IN_LIST TALLY_CUDA_ARCHITECTURES)
  message(STATUS "Fused GEMMs: CUTLASS (${TALLY_CUTLASS_INCLUDE}) on Hopper")
  set(tally_cutlass ON)
  # Hopper's matrix instructions are in no forward-compatible target: an architecture of their own.
  add_library(train_ops_cutlass OBJECT gemm/fused_backward.cu gemm/fused_forward.cu loss/fused_gemm.cu)
  set_target_properties(train_ops_cutlass PROPERTIES CUDA_ARCHITECTURES 90a-real POSITION_INDEPENDENT_CODE ON)
  target_include_directories(train_ops_cutlass PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(train_ops_cutlass SYSTEM PRIVATE ${TALLY_CUTLASS_INCLUDE}
    ${TALLY_CUTLASS_INCLUDE}/../tools/util/include)
  target_compile_options(train_ops_cutlass PRIVATE --expt-relaxed-constexpr)
  list(APPEND train_ops_cuda_sources $<TARGET_OBJECTS:train_ops_cutlass>)
else()
  message(STATUS "Fused GEMMs: cuBLASLt and kernels of our own (CUTLASS was not found or no Hopper among the "
    "architectures; pip install nvidia-cutlass)")
endif()

if("90" IN_LIST TALLY_CUDA_ARCHITECTURES)
  add_library(train_ops_hopper OBJECT attention/hopper/backward.cu attention/hopper/forward.cu
    attention/hopper/short_backward.cu attention/hopper/short_forward.cu attention/hopper/wide_backward.cu
    attention/hopper/wide_forward.cu)
  set_target_properties(train_ops_hopper PROPERTIES CUDA_ARCHITECTURES 90a-real POSITION_INDEPENDENT_CODE ON)
  target_include_directories(train_ops_hopper PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(train_ops_hopper PRIVATE --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra)
  list(APPEND train_ops_cuda_sources $<TARGET_OBJECTS:train_ops_hopper>)
  set_source_files_properties(gemm/float64.cu PROPERTIES COMPILE_DEFINITIONS TALLY_FLOAT64_GEMMS)
endif()

tally_library(train_ops_cuda SOURCES ${train_ops_cuda_sources} LINK train_operations train_device fmt::fmt tally_nvtx)
set_property(TARGET train_ops_cuda PROPERTY UNITY_BUILD OFF)
set_target_properties(train_ops_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Shared)
target_compile_options(train_ops_cuda PRIVATE
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra>)
if(tally_cudnn)
  target_include_directories(train_ops_cuda SYSTEM PRIVATE ${TALLY_CUDNN_FRONTEND} ${TALLY_CUDNN_INCLUDE})
  # The front end refers to NVRTC for engines that we do not use.
  target_link_libraries(train_ops_cuda PUBLIC ${TALLY_CUDNN_LIBRARY} CUDA::nvrtc)
endif()
