# The kernels of gemm/fused.h and loss/fused_gemm.h: which tiles, clusters and epilogues are built. Autotuning chooses
# among them. gemm/fused.cc lists the names.
set(tile_128x128 "cute::Shape<cute::_128, cute::_128, cute::_64>")
set(tile_64x256 "cute::Shape<cute::_64, cute::_256, cute::_64>")
set(cluster_2x1 "cute::Shape<cute::_2, cute::_1, cute::_1>")
set(cluster_1x2 "cute::Shape<cute::_1, cute::_2, cute::_1>")
set(epilogue_64x64 "cute::Shape<cute::_64, cute::_64>")

foreach(work bias bias_residual gelu gelu_derivative erf_gelu_derivative)
  foreach(cluster 2x1 1x2)
    tally_fused_gemm(NAME ${work}_${cluster} KIND FusedKernel HEADER src/ops/gemm/fused_kernel.cuh
      TEMPLATE "fused::Kernel<fused::Work::${work}, fused::bf16, false, ${tile_128x128}, ${cluster_${cluster}}>"
      TEXT "128x128, cluster ${cluster}")
  endforeach()
endforeach()

# GELU's gradient, from the saved input and from the saved derivative.
foreach(work gelu_gradient times_derivative)
  tally_fused_gemm(NAME ${work}_64x32 KIND FusedKernel HEADER src/ops/gemm/fused_kernel.cuh
    TEMPLATE "fused::Kernel<fused::Work::${work}, fused::bf16, false, ${tile_128x128}, ${cluster_2x1}>"
    TEXT "128x128, epilogue in 64x32")
  tally_fused_gemm(NAME ${work}_64x64 KIND FusedKernel HEADER src/ops/gemm/fused_kernel.cuh
    TEMPLATE "fused::Kernel<fused::Work::${work}, fused::bf16, false, ${tile_128x128}, ${cluster_2x1}, ${epilogue_64x64}>"
    TEXT "128x128, epilogue in 64x64")
endforeach()

# In f16 what encoders' GELU takes: models that train in f16 are mostly of them.
foreach(cluster 2x1 1x2)
  tally_fused_gemm(NAME erf_gelu_derivative_f16_${cluster} KIND FusedKernel HEADER src/ops/gemm/fused_kernel.cuh
    TEMPLATE "fused::Kernel<fused::Work::erf_gelu_derivative, fused::f16, false, ${tile_128x128}, ${cluster_${cluster}}>"
    TEXT "f16, 128x128, cluster ${cluster}")
endforeach()
tally_fused_gemm(NAME times_derivative_f16 KIND FusedKernel HEADER src/ops/gemm/fused_kernel.cuh
  TEMPLATE "fused::Kernel<fused::Work::times_derivative, fused::f16, false, ${tile_128x128}, ${cluster_2x1}>"
  TEXT "f16, 128x128, epilogue in 64x32")

foreach(shape 128x128_2x1 128x128_1x2 64x256_2x1)
  string(REGEX MATCH "^([^_]*)_(.*)$" ignored ${shape})
  tally_fused_gemm(NAME cross_entropy_${shape} KIND CrossEntropyKernel HEADER src/ops/loss/fused_gemm_kernel.cuh
    TEMPLATE "fused::CrossEntropy<${tile_${CMAKE_MATCH_1}}, ${cluster_${CMAKE_MATCH_2}}>"
    TEXT "${CMAKE_MATCH_1}, cluster ${CMAKE_MATCH_2}")
endforeach()
