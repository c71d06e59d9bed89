"""bench/gpu/kernels.py on a trace made by hand, whose sums were made by hand too."""
import csv
import gzip
import os
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "bench", "gpu"))
import kernels  # noqa: E402

OURS = "void tally::train::cuda::(anonymous namespace)::"
ADAMW = OURS + "adamw_kernel<float, __nv_bfloat16>(tally::train::AdamW, tally::train::StepState const*, Flat)"
SQUARES = OURS + "squares_kernel<float>(float const*, long, double*)"
NORM = "tally::train::cuda::(anonymous namespace)::norm_kernel(double const*, int, tally::train::StepState*)"
LAYERNORM = OURS + "norm_kernel<__nv_bfloat16, 8, 1>(tally::train::cuda::NormArguments, tally::train::cuda::Dropout)"
PRODUCT = "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNT"
ATTENTION = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128_4x1x1_kernel0_0"
# A part of a name as nvcc 13.0 makes it of gemm_cutlass_dgelu_64x32.cu.
CUTLASS = ("_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiEEENS1_10collective13CollectiveMma"
           "INS1_34MainloopSm90TmaGmmaWarpSpecializedILi6ENS5_IJNS4_1CILi2EEENSA_ILi1EEESC_EEENS1_32KernelTmaWarpSpecialized"
           "PingpongEEENS5_IJNSA_ILi128EEESG_NSA_ILi64EEEEEENS_10bfloat16_tENS1L_22Sm90TmaWarpSpecializedILi4ELi2ELi16ELb1ELb"
           "0EEEJSI_NS1U_IN5tally5train4cuda16TanhGeluGradientEffLS1X_2EvEEEEvNT_6ParamsE")

# The same of the fused linear cross-entropy's GEMM: it sums as well, but belongs to the loss.
EXPONENTIAL = ("_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiEEENS1_10collective13CollectiveMma"
               "INS1_34MainloopSm90TmaGmmaWarpSpecializedILi5ENS5_IJNS4_1CILi2EEENSA_ILi1EEESC_EEENS1_32KernelTmaWarpSpecialized"
               "PingpongEEENS5_IJNSA_ILi64EEENSA_ILi256EEESG_EEENS_10bfloat16_tENS1G_22Sm90TmaWarpSpecializedILi4ELi2ELi16ELb0E"
               "Lb1EEEJNS1O_INS1N_16Sm90ColReductionINS_4plusES1V_S1V_Li0ESI_ffLS1S_2EJNS1O_INS1N_15ExponentialNodeEJNS1N_12Sm90"
               "AccFetchEEEEEEEEvNT_6ParamsE")


def line(name, start, end, grid="132x1x1"):
    return [name, start, end, 7, 1, grid, "256x1x1", 64, 0, 0]


def step(at, extra=()):
    """1,000 ns from one gradient norm's beginning to the next: copy 50, two GEMMs of 200, one of them half under attention of 100
    on another stream, LayerNorm 100, optimizer 20 + 130; idle between."""
    return [line("[copy within device]", at + 10, at + 60, ""), line(PRODUCT, at + 100, at + 300),
            line(PRODUCT, at + 300, at + 500), line(ATTENTION, at + 450, at + 550), line(LAYERNORM, at + 600, at + 700),
            line(NORM, at + 800, at + 820), *extra, line(SQUARES, at + 870, at + 1000)]


def trace(folder, lines):
    path = os.path.join(folder, "trace.csv")
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow("name start end stream graph grid block registers shared bytes".split())
        writer.writerows(reversed(lines))  # CUPTI's buffers are in no order
    return path


class Kernels(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def steps(self, lines, wanted=3):
        return kernels.last_steps(kernels.read(trace(self.folder.name, lines)), wanted)

    def test_step_and_parts(self):
        tuning = [line(PRODUCT, 100 * k, 100 * k + 90) for k in range(20)]
        s = kernels.summary(self.steps(tuning + [l for k in range(5) for l in step(5000 + 1000 * k)]))
        self.assertEqual(s["steps"], 3)
        self.assertEqual(s["wall"], 1000)
        self.assertEqual({part: round(time) for part, (time, _) in s["parts"].items()},
                         {"copies and fills": 50, "GEMMs": 400, "attention": 100, "norm": 100, "optimizer": 150})
        self.assertAlmostEqual(s["idle"], 1000 - (50 + 400 + 50 + 100 + 150))
        self.assertAlmostEqual(s["beside"], 50)
        time, calls = s["kernels"][(PRODUCT, "132x1x1", "GEMMs")]
        self.assertAlmostEqual(time, 400)
        self.assertAlmostEqual(calls, 2)

    def test_only_steps_like_the_last(self):
        lines = [l for k in range(3) for l in step(1000 * k)]
        lines += step(3000, [line("[copy to host]", 3830, 3840, "")]) + step(4000) + step(5000)
        self.assertEqual([s[:2] for s in self.steps(lines)], [(4000, 5000), (5000, 6000)])
        self.assertEqual(len(self.steps(lines, 1)), 1)

    def test_what_follows_the_last_step_is_left_out(self):
        lines = [l for k in range(3) for l in step(1000 * k)] + [line("[copy to host]", 3010, 3900, "")]
        self.assertEqual([s[:2] for s in self.steps(lines)], [(1000, 2000), (2000, 3000)])

    def test_what_an_update_at_the_end_adds_is_left_out(self):
        lines = [l for k in range(3) for l in step(1000 * k)] + [line(ADAMW, 3010, 3900)]
        self.assertEqual([s[:2] for s in self.steps(lines)], [(1000, 2000), (2000, 3000)])

    def test_two_norms_in_a_row_end_one_step(self):
        def two(at):
            return step(at)[:-1] + [line(SQUARES, at + 870, at + 900), line(SQUARES, at + 900, at + 1000)]
        self.assertEqual([s[:2] for s in self.steps(two(0) + two(1000) + two(2000))], [(1000, 2000), (2000, 3000)])

    def test_names(self):
        self.assertEqual(kernels.short(ADAMW), "adamw_kernel<float, bf16>")
        self.assertEqual(kernels.short(NORM), "norm_kernel")
        self.assertEqual(kernels.short(CUTLASS), "cutlass TanhGeluGradient 128x128x64 cluster 2x1 pingpong epilogue 4/2/16")
        self.assertEqual(kernels.short(EXPONENTIAL), "cutlass ExponentialNode 64x256x64 cluster 2x1 pingpong epilogue 4/2/16")
        self.assertEqual(kernels.category(EXPONENTIAL), "GEMMs with cross-entropy")
        for name in ("shift_kernel<__nv_bfloat16>(x)", "share_kernel<__nv_bfloat16>(x)", "scale_rows_kernel<__nv_bfloat16>(x)"):
            self.assertEqual(kernels.category("void tally::train::cuda::(anonymous namespace)::" + name), "cross-entropy")
        self.assertEqual(kernels.short("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>(Params)"),
                         "cutlass_80_simt_sgemm_256x128_8x4_nt_align1")
        self.assertEqual(kernels.category(CUTLASS), "GEMMs with GELU")
        float64 = OURS + "float64::float64_kernel<Kernel<false, true, 4, 2, 4> >(tally::train::cuda::float64::Arguments)"
        self.assertEqual(kernels.category(float64), "GEMMs")
        for name in (NORM, ADAMW, SQUARES, ADAMW.replace("adamw_kernel", "adamw_few_kernel")):
            self.assertEqual(kernels.category(name), "optimizer")
        self.assertEqual(kernels.category(LAYERNORM), "norm")
        for name in (ATTENTION, "void tally::train::cuda::hopper::attention_backward_kernel<__nv_bfloat16>(Backward)",
                     OURS.replace("cuda::", "cuda::hopper::") + "attention_finish_kernel<__half>(Backward)",
                     OURS.replace("cuda::", "cuda::hopper::") + "attention_forward_kernel<__half, true>(Forward)"):
            self.assertEqual(kernels.category(name), "attention")
        self.assertEqual(kernels.category(OURS + "sum_kernel<float, 4, true>(x)"), "GELU, bias and their sums")

    def test_program(self):
        path = trace(self.folder.name, [l for k in range(5) for l in step(1000 * k)])
        kept = os.path.join(self.folder.name, "kept.csv.gz")
        program = [sys.executable, os.path.join(TOP, "bench", "gpu", "kernels.py")]
        done = subprocess.run([*program, path, "--keep", kept], capture_output=True, text=True, check=True)
        self.assertIn("Step: 0.001 ms under the tracer, mean of the last 3\n", done.stdout)
        self.assertIn("| GEMMs | 2 | 0.4 | 40.0 % |", done.stdout)
        self.assertIn("| idle |  | 0.2 | 25.0 % |", done.stdout)
        self.assertIn(f"| 40.00 % | 0.4 | 2 | 0.2 | `{PRODUCT}` | 132x1x1 | GEMMs |", done.stdout)
        with gzip.open(kept, "rt") as file:
            self.assertEqual(len(file.readlines()), 1 + 3 * 7)

    def test_no_whole_step(self):
        program = [sys.executable, os.path.join(TOP, "bench", "gpu", "kernels.py")]
        done = subprocess.run([*program, trace(self.folder.name, step(0))], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("it holds no whole step", done.stderr)


if __name__ == "__main__":
    unittest.main()
